/* Timeouts around blocks (timeout_after): what the other files need of hook_timeout.c. */
#ifndef HEDDLE_TIMEOUT_H
#define HEDDLE_TIMEOUT_H

#include "scheduler.h"

/* Raises the exception of a timeout that is due in the running chain of fibers, if there is one. */
void hd_timeouts_raise_expired(hd_scheduler *scheduler);

/* At the beginning of a hook that may have nothing to wait for: the loop may not have come for long. */
void hd_timeouts_raise_overdue(hd_scheduler *scheduler);

/* The same where nothing waits: one that is masked until it blocks stays. */
void hd_timeouts_raise_unmasked(hd_scheduler *scheduler);

/* A root has ended: the timeouts that are left of it (of an Enumerator that nobody asks any more) strike nobody. */
void hd_timeouts_end(hd_scheduler *scheduler, VALUE root);

/* The fibers that are in a timeout's block: an Enumerator that nobody asks any more is not to be collected while a
 * timer lies on its stack. */
void hd_timeouts_mark(const hd_scheduler *scheduler);

/* [root fiber, deadline in ns] of each that is not due yet. */
VALUE hd_timeouts_set(const hd_scheduler *scheduler);

/* From another thread with the GVL: raises the exception of an overdue timeout in the thread of the scheduler if its
 * fibers compute without ever waiting. Returns when to look again, or HD_NO_DEADLINE. */
int64_t hd_timeouts_strike(hd_scheduler *scheduler, int64_t now_ns);

#endif
