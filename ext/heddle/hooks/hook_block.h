/* The hooks of waits without a descriptor. */
#pragma once

#include <ruby.h>

/* The hook kernel_sleep of this Heddle::Scheduler. */
VALUE hd_kernel_sleep(int argc, VALUE *argv, VALUE scheduler);
