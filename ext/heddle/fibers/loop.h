/* THE TURN OF THE LOOP: hd_loop_turn in loop.c. START READING THERE.
 *
 * There is no loop fiber. A fiber that parks (park.h) makes the turn itself: it picks the next ready fiber and
 * transfers to it. When no fiber is ready, it sleeps in the kernel, for all of them. If it is woken by an interrupt of
 * the thread, it switches to home (home.h), where interrupts reach the program.
 *
 * Coming back without a wake is normal: CRuby returns a finished fiber to the end of the root fiber's resume
 * chain, which is some fiber that is parked here. It means: you are the loop now. */
#pragma once

#include "scheduler.h"

/* Gives control to the next ready fiber, or sleeps in the kernel until something is ready. Returns when control comes
 * back, for whatever reason; what has come with it is of use only if the scheduler has not switched to the caller, see
 * fiber_return.h.
 * own: the wait of the calling fiber; NULL for home while it turns the loop, and for a fiber that has done its work. */
VALUE hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current);

/* What has waited runs now. */
void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait);

/* A look at the kernel that does not wait. */
void hd_loop_poll(hd_scheduler *scheduler);

/* Raises what must reach the thread. Called in home. */
NORETURN(void hd_raise_fatal(hd_scheduler *scheduler));
