/* What the thread was sent: signals, Thread#raise, Thread#kill, the end of its time slice.
 *
 * Ruby runs a signal's handler in the fiber that the main thread ran when the signal came, or ran soon after: in a task
 * that computes, else in the one that turns the loop. The fiber that has called run will not do for that: it blocks.
 * So in the main thread the loop has a fiber of its own, and a handler may do there what it may do in a task. When it
 * waits, another fiber turns the loop from then on. Home, to which Ruby returns when a fiber ends, has its own, too.
 *
 * Ruby also looks for interrupts at every switch, in the fiber that it has come to: a handler may wait while a wait of
 * that fiber is on the stack below. A fiber can have several waits, of which the last one counts. */
#ifndef HEDDLE_INTERRUPTS_H
#define HEDDLE_INTERRUPTS_H

#include "scheduler.h"

/* Looks what the thread was sent. Raises it, or what a handler raises. */
void hd_interrupts_check(hd_scheduler *scheduler);

/* hd_run_until_idle for the main thread. */
void hd_run_with_signals(hd_scheduler *scheduler);

/* Makes the fiber that turns the loop: at first, and when the one there is begins to wait in a handler. */
void hd_loop_make(hd_scheduler *scheduler);

/* A new fiber for this Proc. One that a signal's handler asks for is made by home: Ruby would take a fiber that is made
 * there for the handler as long as it lives, and let it lock no Mutex. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* For home: makes the fiber that a handler waits for. */
void hd_make_ordered_fiber(hd_scheduler *scheduler);

void hd_init_interrupts(void);

#endif
