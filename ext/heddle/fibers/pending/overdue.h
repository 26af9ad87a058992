/* Timeouts of tasks that compute. The loop, which fires the timers, does not get to run then. A Ruby thread looks
 * after them, one a Ractor: it sleeps without the GVL until the earliest deadline is overdue, and ends when there has
 * been none for a while. (A postponed job cannot do it: an exception raised there is dropped.) */
#pragma once

#include "timeout.h"

/* The thread looks after this scheduler, too, from now on. Once for each. Raises NoMemoryError, so it comes before a
 * timeout is set. */
void hd_overdue_register(hd_scheduler *scheduler);

/* A timeout of this scheduler is due then. Wakes the thread only if that is earlier than when it wakes anyway. */
void hd_overdue_expect(hd_scheduler *scheduler, int64_t deadline_ns);

/* What the thread was sent came too late: it must not strike whatever runs next. */
void hd_overdue_take_back(const hd_timeout *timeout);
