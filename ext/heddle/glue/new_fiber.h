/* New fibers for tasks. */
#pragma once

#include "scheduler.h"

/* A new fiber for this Proc. Ruby takes a fiber that is made in a signal's handler for the handler, as long as it
 * lives, and lets it lock no Mutex. So a fiber that a handler asks for is made by another fiber, the maker. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* Called before the first handler may ask for a fiber. Returns the maker, or nil where no signal's handler runs. */
VALUE hd_prepare_new_fibers(void);
