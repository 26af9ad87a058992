/* Native threads of Heddle's own, of which Ruby does not know. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread for which nobody waits. Every signal is blocked in it, because signals are for Ruby's threads.
 * Returns 0 or -errno. */
int hd_thread_start(void *(*body)(void *), void *argument);

/* Makes a condition for hd_condition_wait. */
void hd_condition_init(pthread_cond_t *condition);

/* Waits for the condition, at most until this time of the monotonic clock. False: the time is over. The lock is held
 * before and after the wait. */
bool hd_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns);

/* Can a thread be started now? Asked before Ruby starts one: up to 3.3, when a thread could not be started, Ruby
 * goes on as if it ran, and gives it the GVL for good. */
bool hd_thread_can_start(void);
