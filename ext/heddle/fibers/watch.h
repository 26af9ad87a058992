/* THE WATCH: notices that a fiber runs for too long, while it does.
 *
 * Problem: the loop does not turn while a fiber computes, so nothing on its thread can notice this. Way: one native
 * thread, without the GVL, looks at a counter of each watched scheduler. A scheduler increases the counter whenever a
 * fiber begins to run. If the counter has not changed for a while, the thread triggers a postponed job, which Ruby
 * calls in the thread that has the GVL, between two instructions. Time slices (hooks/time_slice.c) and HEDDLE_STALLS
 * (stalls.h) have such jobs.
 *
 * When no fiber runs, the thread sleeps without a limit. The first scheduler that comes back from the kernel then wakes
 * the thread. The thread starts with the first watched scheduler, and ends a second after the last one has gone. It
 * triggers a job only while a scheduler is open, so never after the end of Ruby. The child of a fork starts its own.
 *
 * Rejected: a Ruby thread, because it would need the GVL to look; a signal, because it would interrupt system calls.
 *
 * Price: a switch of fibers in a watched scheduler increases a counter. To trigger a job, the
 * native thread lets Ruby set a flag of the Ruby thread that has run last, without the GVL, as Ruby's own timer thread
 * does. */
#pragma once

#include "scheduler.h"

/* Watches the scheduler: for stalls if stall_ns is set, for the end of time slices if slice_ns is. */
void hd_watch_begin(hd_scheduler *scheduler);

/* Ends the watch of a scheduler that ends. */
void hd_watch_end(hd_scheduler *scheduler);

/* The slow parts of the functions that follow. */
void hd_watch_run_begins(hd_scheduler *scheduler);
void hd_watch_rest_begins(hd_scheduler *scheduler);

/* Notes that a fiber begins to run. */
static inline void hd_watch_note_start(hd_scheduler *scheduler)
{
    if (RB_LIKELY(!scheduler->watch.on)) return;
    __atomic_store_n(&scheduler->watch.run, scheduler->watch.run + 1, __ATOMIC_RELAXED);
    if (RB_UNLIKELY(scheduler->watch.rests || scheduler->watch.stall_ns)) hd_watch_run_begins(scheduler);
}

/* Notes that no fiber runs: the loop waits in the kernel, or it has ended. */
static inline void hd_watch_note_rest(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->watch.on)) hd_watch_rest_begins(scheduler);
}

/* Has the fiber that runs used up its time slice? */
static inline bool hd_watch_slice_is_over(const hd_scheduler *scheduler)
{
    return scheduler->watch.slice_ns &&
           __atomic_load_n(&scheduler->watch.over, __ATOMIC_RELAXED) == scheduler->watch.run;
}

/* Notes that a slice could not end here, because of the code on top of the stack: the thread tries again very soon. */
static inline void hd_watch_try_again(hd_scheduler *scheduler)
{
    __atomic_store_n(&scheduler->watch.refused, scheduler->watch.refused + 1, __ATOMIC_RELAXED);
}

/* Says whether a job for the end of a slice runs in this moment. Meanwhile no other one is triggered. Otherwise Ruby
 * would call it again at the same place, and, where a job takes long (GC.stress), for ever. */
void hd_watch_slice_job_runs(bool runs);

/* Sets the jobs: for the end of a slice, and for a stall. */
void hd_watch_slices(void (*job)(void *));
void hd_watch_stalls(void (*job)(void *));

/* Has Ruby given a place to the job? It has 32 of them. */
bool hd_watch_has_slices(void);
bool hd_watch_has_stalls(void);
