/* THE TURN OF THE LOOP: hd_loop_turn in loop.c. START READING THERE.
 *
 * There is no loop fiber in the hot path. A fiber that parks (park.h) makes the turn itself: it picks the next ready
 * fiber and transfers to it. When none is ready, control goes to the fiber that turns the loop for home (home.h), so
 * that interrupts surface there; or, when home is not in its loop, the parking fiber sleeps in the kernel itself.
 *
 * Coming back without a wake is normal: CRuby returns a finished fiber to the end of the root fiber's resume
 * chain, which is some fiber that is parked here. It means: you are the loop now. */
#pragma once

#include "scheduler.h"

/* Gives control to the next ready fiber, or sleeps in the kernel until something is ready. Returns when control comes
 * back, for whatever reason.
 * own: the wait of the calling fiber, or NULL when it is the one of the loop, or home. (Those have one themselves while
 * a handler or a finalizer, which Ruby may run at every switch, waits there.) */
void hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current);

/* Switches to a fiber; nothing is queued. */
void hd_switch_to(hd_scheduler *scheduler, VALUE fiber, VALUE root);

/* What has waited runs now. */
void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait);

/* A look at the kernel that does not wait. */
void hd_loop_poll(hd_scheduler *scheduler);

/* Raises what must reach the thread. Called in home. */
NORETURN(void hd_raise_fatal(hd_scheduler *scheduler));
