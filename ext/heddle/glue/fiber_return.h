/* Where control goes when a fiber ends that a task has entered with Fiber#transfer: back to the task.
 *
 * CRuby gives control to the fiber at the end of the root fiber's resume chain (cont.c, return_fiber). In a thread that
 * is the one that has called transfer, here it is one that is parked, or home. That one sends on what has come. */
#pragma once

#include "scheduler.h"

/* Is the running fiber one to which control may come so: of home's chain, or not started by this scheduler? */
bool hd_control_may_come_here(const hd_scheduler *scheduler);

/* Calls what switches to another fiber, where control may come to. */
VALUE hd_call_and_send_back(hd_scheduler *scheduler, VALUE (*function)(VALUE), VALUE argument);

/* The same for rb_fiber_transfer. */
VALUE hd_transfer_and_send_back(hd_scheduler *scheduler, VALUE fiber, int argc, const VALUE *argv);
