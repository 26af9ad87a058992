/* HOME: the fiber that stands for its thread. Interrupts (signals and their handlers, Thread#raise, Thread#kill)
 * reach the program there, wherever the thread was when they came.
 *
 * Problem: the fibers of a thread sleep in the kernel by turns, so an interrupt may wake any of them. Way: the woken
 * fiber switches to home, or to the fiber that home has resumed and that waits now. Ruby raises the exception or
 * runs the handler there. So the program sees it where it waits, as without a scheduler. Home is
 *
 *  - the caller of Heddle.run. It runs the block itself, is not blocking meanwhile (fiber_insides.h), and waits as a
 *    task does. When the block has ended, it turns the loop until the other fibers have ended, too.
 *  - in plain Ruby, the fiber that calls run or close of a scheduler, and turns the loop.
 *
 * Rejected: a fiber of its own for the block of a run. It took over the fiber-locals of its caller, but not its locks,
 * transactions, Ctrl-C, causes, break and the depth of the stack. It is now only the fallback, where the places in
 * Ruby's structs were not found (fiber_insides.h).
 *
 * When a task ends, Ruby gives control to the end of the root fiber's resume chain, which mostly is home. If the
 * program has left home by Fiber#transfer, it can be a fiber that does not wait in Heddle. Then the task does not
 * end: it hands control over, and the GC frees it.
 *
 * home_waits.h says how a handler waits at home. guides/design.md says what of Ruby assumes that a root fiber is
 * blocking. */
#pragma once

#include "scheduler.h"

/* Turns the loop on this fiber until no other fiber is parked or ready. Raises interrupts, and exceptions of fibers
 * that are meant for the thread; may be called again after that. */
void hd_run_until_idle(hd_scheduler *scheduler);

/* Is home turning the loop in hd_run_until_idle while scopes are open? Then the loop looks whether only these are left,
 * and nobody comes back to them. Called when a fiber has ended. */
void hd_home_look_for_abandoned(hd_scheduler *scheduler);

/* Runs function(argument), the block of a run, in the current fiber. */
VALUE hd_run_at_home(hd_scheduler *scheduler, VALUE task, VALUE (*function)(VALUE), VALUE argument);

/* Hands control over for a running fiber that has done its work. It does not return if control would go to a fiber
 * that does not wait in Heddle. */
void hd_end_at_home(hd_scheduler *scheduler);
