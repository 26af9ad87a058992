/* What a scheduler counts for Heddle.stats, beside what its reactor counts. */
#pragma once

#include "scheduler.h"

/* Adds the counts of a scheduler that has ended to the sums of its Ractor. */
void hd_stats_keep(const hd_scheduler *scheduler);

/* Sets a key of one of the hashes that reports consist of. */
static inline void hd_set(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

static inline VALUE hd_seconds(int64_t duration_ns)
{
    return rb_float_new((double)duration_ns / HD_NS_PER_SECOND);
}
