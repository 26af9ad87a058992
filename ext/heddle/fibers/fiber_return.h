/* Where control goes when a fiber ends that a task has entered with Fiber#transfer: back to the task.
 *
 * CRuby gives control to the fiber at the end of the root fiber's resume chain (cont.c, return_fiber). In a thread that
 * is the one that has called transfer, here it is one that is parked, or home. That one sends on what has come. */
#pragma once

#include "scheduler.h"

/* Control has come to a fiber to which the scheduler has not switched. Is the fiber that ran neither at its end nor
 * waiting for anything? (Without a stack it has not begun.) */
bool hd_left_alone(hd_scheduler *scheduler);

/* Sends the value that has come to the fiber that was left alone. Returns what has come when the caller goes on. */
VALUE hd_send_back(hd_scheduler *scheduler, VALUE value);

/* An exception has come to the caller. Raises it in the fiber that was left alone, and returns true when control comes
 * back, with the state of rb_protect. false: the exception is meant for the caller.
 * before: what errinfo was. */
bool hd_send_error_back(hd_scheduler *scheduler, VALUE before, int *state);
