/* Notices that every fiber waits for another one. */
#pragma once

#include "scheduler.h"

/* How long a poll without a deadline may last before the loop must check for a deadlock; HD_NO_DEADLINE when
 * something in the kernel or a worker can end the poll. */
int64_t hd_deadlock_patience(hd_scheduler *scheduler);

/* Raises Heddle::Deadlock if nothing can wake the fibers. Called at home, because it may run a method in Ruby, when a
 * poll has lasted that long. */
void hd_deadlock_check(hd_scheduler *scheduler);
