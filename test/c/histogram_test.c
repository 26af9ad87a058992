/* core/histogram.h: each duration is in a bucket that it belongs to, and the buckets are as fine as they say. */
#include "core/histogram.h"
#include "endings.h"
#include "test.h"

static hd_histogram histogram;

/* The bucket of a duration. */
static int bucket_of(int64_t duration_ns)
{
    histogram = (hd_histogram){.max_ns = 0};
    hd_histogram_add(&histogram, duration_ns);
    int found = -1;
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS; i++) {
        if (!histogram.counts[i]) continue;
        CHECK_EQ(1, histogram.counts[i]);
        CHECK_EQ(-1, found);
        found = i;
    }
    CHECK_EQ(duration_ns, histogram.sum_ns);
    CHECK_EQ(duration_ns, histogram.max_ns);
    return found;
}

static void check(int64_t duration_ns)
{
    int bucket = bucket_of(duration_ns);
    CHECK(bucket >= 0);
    CHECK(duration_ns < hd_histogram_bound(bucket));
    if (bucket) CHECK(duration_ns >= hd_histogram_bound(bucket - 1));
}

TEST(bounds_grow_by_a_quarter_at_most)
{
    CHECK_EQ(1024, hd_histogram_bound(0));
    for (int i = 1; i < HD_HISTOGRAM_BUCKETS - 1; i++) {
        int64_t before_ns = hd_histogram_bound(i - 1), bound_ns = hd_histogram_bound(i);
        CHECK(bound_ns > before_ns);
        CHECK(bound_ns * 4 <= before_ns * 5);
    }
    CHECK_EQ(INT64_C(1) << HD_HISTOGRAM_LAST_BIT, hd_histogram_bound(HD_HISTOGRAM_BUCKETS - 2));
    CHECK_EQ(INT64_MAX, hd_histogram_bound(HD_HISTOGRAM_BUCKETS - 1));
}

TEST(every_bound)
{
    check(0);
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS - 1; i++)
        for (int64_t off = -1; off <= 1; off++) check(hd_histogram_bound(i) + off);
    check(INT64_MAX - 1);
}

TEST(random_durations)
{
    for (int i = 0; i < 100000; i++) check((int64_t)(rnd64() >> (1 + rnd(63))));
}

TEST(two_are_merged)
{
    hd_histogram one = {.max_ns = 0}, other = {.max_ns = 0};
    hd_histogram_add(&one, 5);
    hd_histogram_add(&other, 6);
    hd_histogram_add(&other, 7000);
    hd_histogram_merge(&one, &other);
    CHECK_EQ(2, one.counts[0]);
    CHECK_EQ(7011, one.sum_ns);
    CHECK_EQ(7000, one.max_ns);
    hd_histogram_merge(&other, &one);
    CHECK_EQ(3, other.counts[0]);
    CHECK_EQ(7000, other.max_ns);
}


TEST(a_negative_duration_is_caught)
{
    CHECK_ABORTS(hd_histogram_add(&histogram, -1));
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(bounds_grow_by_a_quarter_at_most);
    RUN(every_bound);
    RUN(random_durations);
    RUN(two_are_merged);
    RUN(a_negative_duration_is_caught);
    return test_finish();
}
