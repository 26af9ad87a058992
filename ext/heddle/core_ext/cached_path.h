/* Looks at paths that the kernel has in memory: such a look takes no time. */
#pragma once

#include "fibers/scheduler.h"

enum { HD_LARGE_FILE = 1 << 20 }; /* to read more than this, or to throw it away, takes milliseconds */

/* Returns the content of a file as a binary String, if the kernel has it in memory and it is not large. Returns nil
 * also when the other fibers must run before more is read, and when anything is unusual, which Ruby's own method then
 * finds out. */
VALUE hd_cached_content(hd_scheduler *scheduler, VALUE path);
