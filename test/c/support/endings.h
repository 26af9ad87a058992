/* How waits end that no backend ends, as the reactor and fibers/ do it. */
#pragma once

#include "core/wait.h"

/* Every timer whose deadline is not after now_ns fires. Returns how many. */
static inline size_t fire_due(hd_timers *timers, int64_t now_ns)
{
    size_t fired = 0;
    for (; timers->count && hd_timers_next(timers) <= now_ns; fired++) hd_timers_fire_first(timers);
    return fired;
}

static inline bool settle_with_exception(hd_wait *wait, hd_word exception)
{
    if (!hd_wait_settle(wait, HD_WOKEN_BY_EXCEPTION)) return false;
    wait->exception = exception;
    return true;
}
