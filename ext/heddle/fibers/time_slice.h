/* TIME SLICES: a fiber that computes for too long lets the other ready fibers run.
 *
 * Problem: the loop turns only when a fiber waits, so a fiber that computes holds up all others. Way: the watch
 * (watch.h) triggers a postponed job when a fiber has run for its slice. Ruby calls the job where it would also switch
 * threads. The job parks the fiber behind all others that are ready, as at the end of a turn (turn.h), and the job goes
 * on when the fiber has its next turn. If no other fiber is ready, the fiber goes on at once.
 *
 * A slice does not end everywhere:
 *
 *  - Code in Ruby must be on top, or a method in C that only computes (ruby/top_frame.h).
 *  - The fiber must be one of the scheduler's own, on its thread, not blocking, not in a wait, and in no call that
 *    Heddle has not finished.
 *  - Neither Heddle.without_time_slices nor handle_interrupt(Object => :never) must hold it.
 *
 * The stopped fiber still counts as computing: no event, cancel or timeout ends its wait. What is sent to it meanwhile
 * is raised later, and never in the job, because Ruby drops an exception that is raised there: a cancel or a
 * Fiber#raise at the next wait of the fiber; an overdue timeout by the thread that looks after those (overdue.h), and
 * the job waits for this; a Thread#raise, a kill or a signal by Ruby, right after the job.
 *
 * Price: code that relies on nobody running between two waits is wrong with time slices. Heddle's own code is exempt.
 * A job is called once for each slice.
 *
 * Sources: CRuby's vm_trace.c (rb_postponed_job_flush), thread.c (rb_threadptr_execute_interrupts), cont.c
 * (fiber_switch); guides/design.md, "Time slices". */
#pragma once

#include "scheduler.h"

/* Gives each fiber of the scheduler slices of this length, from now on. */
void hd_time_slices_begin(hd_scheduler *scheduler, int64_t slice_ns);

/* Does the fiber of home stand in the ready queue because its slice is over? It must not be disturbed there. */
static inline bool hd_home_computes(const hd_scheduler *scheduler)
{
    return RB_UNLIKELY(scheduler->home.top && scheduler->home.top->sliced);
}

/* Was the thread sent something (Thread#raise, a kill, a signal) that no fiber has looked at yet? */
bool hd_thread_was_sent_something(hd_scheduler *scheduler);
