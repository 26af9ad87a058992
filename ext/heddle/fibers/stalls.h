/* HEDDLE_STALLS: finds the fiber that keeps the loop from turning, while it does.
 *
 * A thread of Ruby looks now and then (lib/heddle/internal/stalls.rb). But while a method in C holds the GVL, that
 * thread gets no turn, and afterwards it comes too late. So a thread without the GVL looks as well, and orders a look
 * in the thread that holds it: Ruby takes that up as soon as the method returns. */
#pragma once

#include "core/clock.h"
#include "scheduler.h"

/* A fiber begins to run. */
static inline void hd_stalls_note_start(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->watch.on))
        __atomic_store_n(&scheduler->watch.since_ns, hd_clock_now(), __ATOMIC_RELAXED);
}

/* None runs: the loop waits in the kernel, or it has ended. */
static inline void hd_stalls_note_rest(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->watch.on)) __atomic_store_n(&scheduler->watch.since_ns, 0, __ATOMIC_RELAXED);
}

/* The scheduler ends. */
void hd_stalls_unwatch(hd_scheduler *scheduler);
