/* Counts durations by their length. A power of two has four buckets, so a quantile has an error of a quarter at
 * most. To add a duration takes a few instructions, and no memory is ever allocated. */
#pragma once

#include <stdint.h>

enum {
    HD_HISTOGRAM_FIRST_BIT = 10, /* durations shorter than 2^10 ns are in the first bucket */
    HD_HISTOGRAM_LAST_BIT = 36,  /* durations of 2^36 ns (69 s) or longer are in the last bucket */
    HD_HISTOGRAM_BUCKETS = (HD_HISTOGRAM_LAST_BIT - HD_HISTOGRAM_FIRST_BIT) * 4 + 2
};

typedef struct {
    uint64_t counts[HD_HISTOGRAM_BUCKETS];
    uint64_t sum_ns;
    int64_t max_ns;
} hd_histogram;

void hd_histogram_add(hd_histogram *histogram, int64_t duration_ns);

/* Adds the counts of the other histogram. */
void hd_histogram_merge(hd_histogram *histogram, const hd_histogram *other);

/* The upper bound of this bucket: its durations are shorter. INT64_MAX for the last one. */
int64_t hd_histogram_bound(int bucket);
