/* THE TURN OF THE LOOP: hd_loop_turn in loop.c. START READING THERE.
 *
 * Problem: while some fibers of a thread wait, others must run, and the thread must sleep when none can. Way: a
 * fiber that parks (park.h) turns the loop itself. It picks the next ready fiber and transfers to it. When no fiber
 * is ready, it sleeps in the kernel for all of them. If an interrupt of the thread wakes it, it switches to home
 * (home.h), where interrupts reach the program.
 *
 * Rejected: a fiber of its own for the loop. Each wait would then cost two switches instead of one.
 *
 * Price: control may come back to a fiber without a wake. CRuby returns from a finished fiber to the end of the root
 * fiber's resume chain, which is some fiber that is parked here. This fiber turns the loop from then on.
 *
 * Sources: CRuby's cont.c (return_fiber, fiber_switch); guides/design.md, "A read, step by step". */
#pragma once

#include "scheduler.h"

/* Gives control to the next ready fiber, or sleeps in the kernel until something is ready. Returns when control
 * comes back, for any reason. If the scheduler has switched to the caller, the returned value has no meaning; else
 * see fiber_return.h. own: the wait of the calling fiber; NULL for home while it turns the loop, and for a fiber
 * that has done its work. current: the calling fiber. */
VALUE hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current);

/* Makes the loop start the tasks that another thread has left here (Scheduler#start_left), soon and where signals are
 * handled. Any thread with the GVL may call it. */
void hd_loop_call(hd_scheduler *scheduler);

/* Was the thread sent something (Thread#raise, a kill, a signal) that no fiber has looked at yet? */
bool hd_thread_was_sent_something(hd_scheduler *scheduler);

/* Notes that the fiber of this wait runs now. */
void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait);

/* Looks at the kernel without waiting. */
void hd_loop_poll(hd_scheduler *scheduler);

/* Takes the exception that must reach the thread, or returns nil. Called in home. */
VALUE hd_take_fatal(hd_scheduler *scheduler);

/* Raises it. */
NORETURN(void hd_raise_fatal(hd_scheduler *scheduler));
