/* Finds stacks for new fibers, and says why none can be had. Each stack takes two of the kernel's memory mappings,
 * and a process may have vm.max_map_count of them. The stack of an ended fiber is freed only when the GC frees the
 * fiber object. */
#pragma once

#include "scheduler.h"

/* Calls start(argument), which switches to a new fiber. When Ruby has no stack for it, this function runs the GC and
 * tries once more. If that fails, too, it raises a FiberError that names the limit. */
VALUE hd_with_stack(hd_scheduler *scheduler, VALUE (*start)(VALUE), VALUE argument);

/* Counts a fiber of a scheduler that is about to end: its stack can soon be had again. */
void hd_stack_is_done_with(void);
