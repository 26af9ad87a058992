/* Timeouts around blocks (timeout_after): what park.c needs of hook_timeout.c. */
#ifndef HEDDLE_TIMEOUT_H
#define HEDDLE_TIMEOUT_H

#include "scheduler.h"

/* Raises the exception of a timeout that is due in the running chain of fibers, if there is one. */
void hd_timeouts_raise_expired(hd_scheduler *scheduler);

#endif
