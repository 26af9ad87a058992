/* Blocking operations that cannot take time, which Ruby 3.4+ would hand to a worker. */
#ifndef HEDDLE_QUICK_H
#define HEDDLE_QUICK_H

#include "scheduler.h"

enum { HD_LARGE_FILE = 1 << 20 }; /* to read more than this, or to throw it away, takes milliseconds */

/* Calls the function; what it offers to blocking_operation_wait meanwhile runs on this thread. */
VALUE hd_quickly(hd_scheduler *scheduler, VALUE (*function)(VALUE), VALUE argument);

/* Is the current fiber in such a call? */
bool hd_quick(const hd_scheduler *scheduler);

void hd_init_quick(void);

#endif
