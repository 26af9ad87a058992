/* Home: the fiber that stands for its thread. Interrupts (signals and their handlers, Thread#raise, Thread#kill) reach
 * the program there, wherever the thread was when they came.
 *
 * Problem: fibers take turns in sleeping for all of them, so an interrupt may wake any of them. Way: the fiber that was
 * woken switches to home, or to the fiber that home has resumed and that waits now, and Ruby raises the exception or
 * runs the handler there: where the program waits, as without a scheduler. Home is
 *
 *  - the caller of Heddle.run. It runs the block itself, is not blocking meanwhile (fiber_insides.h), and waits as a
 *    task does. When the block has ended it turns the loop until the other fibers have ended, too.
 *  - where a scheduler was set in plain Ruby: the fiber that calls run or close, and turns the loop.
 *
 * Ruby gives control to the end of the root fiber's resume chain when a task ends, which mostly is home. If it is a
 * fiber that does not wait in Heddle, for the program has left home by Fiber#transfer, the task does not end: it hands
 * over and is left to the GC.
 *
 * home_waits.h says how a handler waits there. */
#pragma once

#include "scheduler.h"

/* Turns the loop on this fiber until no other is parked or ready. Raises interrupts and the exceptions of fibers that
 * are meant for the thread; may be called again after that. */
void hd_run_until_idle(hd_scheduler *scheduler);

/* Runs function(argument), the block of a run, in the current fiber. (See hd_fibers_can_be_unblocked.) */
VALUE hd_run_at_home(hd_scheduler *scheduler, VALUE task, VALUE (*function)(VALUE), VALUE argument);

/* The running fiber has done its work. If control would go to a fiber that does not wait in Heddle, it never comes back
 * from here. */
void hd_end_at_home(hd_scheduler *scheduler);
