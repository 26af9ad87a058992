/* Fibers that the scheduler starts. */
#ifndef HEDDLE_HOOK_FIBER_H
#define HEDDLE_HOOK_FIBER_H

#include "scheduler.h"

/* A Proc for Fiber.new; the block that the fiber is to run is given when it is first switched to. */
VALUE hd_fiber_body(VALUE self);

#endif
