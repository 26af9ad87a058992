/* OVERDUE TIMEOUTS: ends tasks that compute for longer than their timeout.
 *
 * Problem: the loop fires the timers, but it does not run while a task computes. Way: one Ruby thread in each Ractor
 * sleeps without the GVL until the earliest deadline is overdue. Then it looks at the fibers that run, because no
 * others can compute, and raises the exception in their thread. It ends when there has been no deadline for a while.
 *
 * Rejected: a postponed job, because Ruby drops an exception that is raised there, and runs the job in any thread.
 *
 * Price: a thread in each Ractor that sets timeouts. It is woken only when a new deadline is earlier than its next
 * look. */
#pragma once

#include "timeout.h"

/* Makes the thread look after this scheduler, too, unless it does so already. It may raise NoMemoryError, so it is
 * called before a timeout is set. */
void hd_overdue_register(hd_scheduler *scheduler);

/* Announces a deadline of this scheduler. Wakes the thread only if the deadline is earlier than its next look. */
void hd_overdue_expect(hd_scheduler *scheduler, int64_t deadline_ns);

/* Is a timeout of the fibers that run overdue? Then this releases the GVL until the thread has sent the exception, for
 * 50 ms at most. Ruby raises it as soon as the caller, a postponed job, returns. True: it was sent. */
bool hd_overdue_raise_here(hd_scheduler *scheduler);

/* Takes back an exception that was sent to the thread too late, so that it is not raised in the next fiber that
 * runs. */
void hd_overdue_take_back(const hd_timeout *timeout);
