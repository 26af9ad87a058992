/* As the reactor does it with its two heaps: every timer whose deadline is not after now_ns fires. Returns how many. */
#ifndef HEDDLE_FIRE_H
#define HEDDLE_FIRE_H

#include "core/timers.h"

static inline size_t fire_due(hd_timers *timers, int64_t now_ns)
{
    size_t fired = 0;
    for (; timers->count && hd_timers_next(timers) <= now_ns; fired++) hd_timers_fire_first(timers);
    return fired;
}

#endif
