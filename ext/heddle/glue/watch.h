/* Timeouts of tasks that compute. The loop, which fires the timers, does not get to run then. A Ruby thread looks
 * after them, one a Ractor: it sleeps without the GVL until the earliest deadline is overdue, and ends when there has
 * been none for a while. (A postponed job cannot do it: an exception raised there is dropped.) */
#ifndef HEDDLE_WATCH_H
#define HEDDLE_WATCH_H

#include "scheduler.h"

/* A timeout of this scheduler is due then. Wakes the thread only if that is earlier than when it wakes anyway. */
void hd_watch_deadline(hd_scheduler *scheduler, int64_t deadline_ns);

void hd_init_watch(void);

#endif
