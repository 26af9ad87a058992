/* New fibers for tasks. */
#pragma once

#include "scheduler.h"

/* A new fiber for this Proc. One that a handler (see below) asks for is made by home: Ruby would take a fiber that is
 * made there for the handler as long as it lives, and let it lock no Mutex. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* Does the handler of a signal run here, or a finalizer, which Ruby calls in the same way? */
bool hd_in_handler(void);
