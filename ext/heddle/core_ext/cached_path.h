/* What the kernel has in memory of a path: to look that up takes no time. */
#pragma once

#include "fibers/scheduler.h"

enum { HD_LARGE_FILE = 1 << 20 }; /* to read more than this, or to throw it away, takes milliseconds */

/* All that is in a file, as a binary String, if the kernel has it in memory and it is not large; or nil, also when the
 * others are to run before more is read, and when anything is unusual: Ruby's own method finds out. */
VALUE hd_cached_content(hd_scheduler *scheduler, VALUE path);
