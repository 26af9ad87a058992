/* New fibers for tasks. */
#pragma once

#include "scheduler.h"

/* A new fiber for this Proc. One that a signal's handler asks for is made by home: Ruby would take a fiber that is made
 * there for the handler as long as it lives, and let it lock no Mutex. */
VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body);

/* Does a signal's handler run here? Only the main thread runs them. */
bool hd_in_handler(void);
