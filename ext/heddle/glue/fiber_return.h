/* Where control goes when a fiber ends that a task has entered with Fiber#transfer: back to the task.
 *
 * CRuby gives control to the fiber at the end of the root fiber's resume chain (cont.c, return_fiber). In a thread that
 * is the one that has called transfer, here it is one that is parked, or home. That one sends on what has come. */
#pragma once

#include "scheduler.h"

/* Calls what switches to another fiber, in one that control may come to so: one that this scheduler has not started. */
VALUE hd_call_and_send_back(hd_scheduler *scheduler, VALUE (*function)(VALUE), VALUE argument);

/* The same for rb_fiber_transfer. */
VALUE hd_transfer_and_send_back(hd_scheduler *scheduler, VALUE fiber, int argc, const VALUE *argv);
