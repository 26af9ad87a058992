/* STALLS (HEDDLE_STALLS): finds the fiber that keeps the loop from turning, while it does.
 *
 * Problem: a Ruby thread looks now and then (lib/heddle/internal/stalls.rb). But while a method in C holds the GVL,
 * that thread cannot run, and afterwards it comes too late. Way: a thread without the GVL looks as well. It orders a
 * look in the thread that holds the GVL, and Ruby makes this look as soon as the method returns.
 *
 * Price: each switch notes when the fiber began to run. */
#pragma once

#include "core/clock.h"
#include "scheduler.h"

/* Notes that a fiber begins to run. */
static inline void hd_stalls_note_start(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->watch.on))
        __atomic_store_n(&scheduler->watch.since_ns, hd_clock_machine(), __ATOMIC_RELAXED);
}

/* Notes that no fiber runs: the loop waits in the kernel, or it has ended. */
static inline void hd_stalls_note_rest(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->watch.on)) __atomic_store_n(&scheduler->watch.since_ns, 0, __ATOMIC_RELAXED);
}

/* Ends the watch of a scheduler that ends. */
void hd_stalls_unwatch(hd_scheduler *scheduler);
