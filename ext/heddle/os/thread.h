/* Native threads of Heddle's own, of which Ruby does not know. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread for which nobody waits. Every signal is blocked in it, because signals are for Ruby's threads.
 * Returns 0 or -errno. */
int hd_thread_start(void *(*body)(void *), void *argument);

/* Makes a condition whose timeouts are times of the monotonic clock. */
void hd_condition_init(pthread_cond_t *condition);

/* Can a thread be started now? Asked before Ruby starts one: up to 3.3, when a thread could not be started, Ruby
 * goes on as if it ran, and gives it the GVL for good. */
bool hd_thread_can_start(void);
