/* Notices that every fiber waits for another one. */
#pragma once

#include "scheduler.h"

/* How long a poll without a deadline may last before this is to be checked; HD_NO_DEADLINE when something in the
 * kernel or a worker can end it. */
int64_t hd_deadlock_patience(hd_scheduler *scheduler);

/* Such a poll has ended: raises Heddle::Deadlock if nothing can wake the fibers. */
void hd_deadlock_check(hd_scheduler *scheduler);
