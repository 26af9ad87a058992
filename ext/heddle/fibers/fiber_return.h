/* Sends control back to a task when a fiber ends that the task has entered with Fiber#transfer.
 *
 * CRuby gives control to the fiber at the end of the root fiber's resume chain (cont.c, return_fiber). In a plain
 * thread this fiber has called transfer. Here it is a parked fiber, or home. So that fiber passes the value or the
 * exception on to the task. */
#pragma once

#include "scheduler.h"

/* Passes the value on to the fiber that was left alone. Returns the value that comes when the caller goes on. */
VALUE hd_send_back(hd_scheduler *scheduler, VALUE value);

/* Passes on the exception that the caller has received: raises it in the fiber that was left alone. Returns true when
 * control comes back, with the state of rb_protect, and false if the exception is meant for the caller. before: the
 * errinfo of before the switch. */
bool hd_send_error_back(hd_scheduler *scheduler, VALUE before, int *state);
