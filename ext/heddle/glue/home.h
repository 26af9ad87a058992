/* Home: the fiber in which the loop of a scheduler runs, and what the thread was sent: signals, Thread#raise,
 * Thread#kill, the end of its time slice.
 *
 * Ruby runs a signal's handler in the fiber that the main thread ran when the signal came, or ran soon after: in a task
 * that computes, else in the one that turns the loop. The fiber that has called run will not do for that: it blocks.
 * So in the main thread the loop has a fiber of its own, and a handler may do there what it may do in a task. When it
 * waits, another fiber turns the loop from then on. Home, to which Ruby returns when a fiber ends, has its own, too.
 *
 * Ruby also looks for interrupts at every switch, in the fiber that it has come to: a handler may wait while a wait of
 * that fiber is on the stack below. A fiber can have several waits, of which the last one counts. */
#pragma once

#include "scheduler.h"

/* Turns the loop on this fiber, the home, until no fiber is parked or ready. Raises interrupts and fatal
 * exceptions of fibers; may be called again after that. */
void hd_run_until_idle(hd_scheduler *scheduler);
