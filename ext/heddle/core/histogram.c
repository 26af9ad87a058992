/* See histogram.h. */
#include "histogram.h"

#include "check.h"

/* Finds the bucket of a duration. The two bits below its highest bit choose among the four buckets of a power of
 * two. */
static int bucket_of(uint64_t duration_ns)
{
    if (duration_ns < UINT64_C(1) << HD_HISTOGRAM_FIRST_BIT) return 0;
    if (duration_ns >= UINT64_C(1) << HD_HISTOGRAM_LAST_BIT) return HD_HISTOGRAM_BUCKETS - 1;
    int bit = 63 - __builtin_clzll(duration_ns);
    int quarter = (int)(duration_ns >> (bit - 2)) & 3;
    return (bit - HD_HISTOGRAM_FIRST_BIT) * 4 + quarter + 1;
}

void hd_histogram_add(hd_histogram *histogram, int64_t duration_ns)
{
    HD_ASSERT(duration_ns >= 0);
    histogram->counts[bucket_of((uint64_t)duration_ns)]++;
    histogram->sum_ns += (uint64_t)duration_ns;
    if (duration_ns > histogram->max_ns) histogram->max_ns = duration_ns;
}

void hd_histogram_merge(hd_histogram *histogram, const hd_histogram *other)
{
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS; i++) histogram->counts[i] += other->counts[i];
    histogram->sum_ns += other->sum_ns;
    if (other->max_ns > histogram->max_ns) histogram->max_ns = other->max_ns;
}

int64_t hd_histogram_bound(int bucket)
{
    HD_ASSERT(bucket >= 0 && bucket < HD_HISTOGRAM_BUCKETS);
    if (bucket == HD_HISTOGRAM_BUCKETS - 1) return INT64_MAX;
    int bit = HD_HISTOGRAM_FIRST_BIT + bucket / 4;
    return (INT64_C(4) + bucket % 4) << (bit - 2);
}
