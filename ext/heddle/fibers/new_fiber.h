/* Makes the fibers of tasks. */
#pragma once

#include "scheduler.h"

/* Makes a fiber for this Proc. Ruby takes a fiber that is made in a signal's handler for a part of the handler, as
 * long as it lives, and lets it lock no Mutex. So when a handler asks for a fiber, another fiber makes it: the
 * maker. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* The maker of this thread, which is made at the first call; nil where it cannot be made. Called before a handler
 * may need it. */
VALUE hd_maker(void);
