/* New fibers for tasks. */
#pragma once

#include "scheduler.h"

/* A new fiber for this Proc. Ruby takes a fiber that is made in a signal's handler for the handler, as long as it
 * lives, and lets it lock no Mutex. So a fiber that a handler asks for is made by another fiber, the maker. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* The maker of this thread, an old or a new one; nil where it cannot be made. Called before a handler may need it. */
VALUE hd_maker(void);
