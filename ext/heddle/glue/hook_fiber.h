/* Fibers that the scheduler starts. */
#pragma once

#include "scheduler.h"

/* A Proc for Fiber.new; the block that the fiber is to run is given when it is first switched to. */
VALUE hd_fiber_body(VALUE self);
