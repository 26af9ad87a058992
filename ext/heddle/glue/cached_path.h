/* What the kernel has in memory of a path: to look that up takes no time. */
#ifndef HEDDLE_CACHED_PATH_H
#define HEDDLE_CACHED_PATH_H

enum { HD_LARGE_FILE = 1 << 20 }; /* to read more than this, or to throw it away, takes milliseconds */

#endif
