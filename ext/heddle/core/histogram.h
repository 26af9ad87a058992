/* How often durations of which length came. A power of two has four buckets, so a quantile is told with an error of
 * a quarter at most; to add one takes a few instructions, and no memory is ever allocated. */
#pragma once

#include <stdint.h>

enum {
    HD_HISTOGRAM_FIRST_BIT = 10, /* what is shorter than 2^10 ns is in the first bucket */
    HD_HISTOGRAM_LAST_BIT = 36,  /* what is as long as 2^36 ns (69 s), or longer, is in the last one */
    HD_HISTOGRAM_BUCKETS = (HD_HISTOGRAM_LAST_BIT - HD_HISTOGRAM_FIRST_BIT) * 4 + 2
};

typedef struct {
    uint64_t counts[HD_HISTOGRAM_BUCKETS];
    uint64_t sum_ns;
    int64_t max_ns;
} hd_histogram;

void hd_histogram_add(hd_histogram *histogram, int64_t duration_ns);

/* Adds what is in the other one. */
void hd_histogram_merge(hd_histogram *histogram, const hd_histogram *other);

/* Everything in this bucket is shorter than that; INT64_MAX for the last one. */
int64_t hd_histogram_bound(int bucket);
