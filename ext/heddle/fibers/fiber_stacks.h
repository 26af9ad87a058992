/* The stacks of fibers. Each takes two of the kernel's memory mappings, of which a process may have
 * vm.max_map_count, and that of a fiber that has ended comes back only when the GC frees the fiber object. */
#pragma once

#include "scheduler.h"

/* Calls start(argument), which switches to a new fiber. When Ruby has no stack for that, the garbage is collected and
 * it is tried once more; then a FiberError says what can be done. */
VALUE hd_with_stack(hd_scheduler *scheduler, VALUE (*start)(VALUE), VALUE argument);

/* A fiber of a scheduler is about to end. */
void hd_stack_is_done_with(void);
