/* Mutex#sleep with a timeout and ConditionVariable#wait: what hook_block.c needs of timed_sleep.c. */
#ifndef HEDDLE_TIMED_SLEEP_H
#define HEDDLE_TIMED_SLEEP_H

#include "scheduler.h"

/* The call that a kernel_sleep of this fiber is made for, or NULL; it is told how the sleep ends. */
typedef struct hd_timed_sleep hd_timed_sleep;
hd_timed_sleep *hd_timed_sleep_take(hd_scheduler *scheduler);
void hd_timed_sleep_ended(hd_timed_sleep *sleep, bool timed_out);

/* The ConditionVariable that it is for; nil for Mutex#sleep, and for NULL. */
VALUE hd_timed_sleep_condition(const hd_timed_sleep *sleep);

/* Waits for a Mutex that the fiber has to lock again after it has slept; false: it is no such one. */
bool hd_lock_again(hd_scheduler *scheduler, VALUE mutex);

void hd_init_timed_sleep(void);

#endif
