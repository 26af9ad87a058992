/* The hooks of what waits without a descriptor. */
#ifndef HEDDLE_HOOK_BLOCK_H
#define HEDDLE_HOOK_BLOCK_H

#include <ruby.h>

/* The hook kernel_sleep of this Heddle::Scheduler. */
VALUE hd_kernel_sleep(int argc, VALUE *argv, VALUE scheduler);

#endif
