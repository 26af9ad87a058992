/* Native threads of Heddle's own, which Ruby knows nothing of. */
#pragma once

#include <stdbool.h>

/* Starts one that nobody waits for. Every signal is blocked in it: they are for Ruby's threads. 0 or -errno. */
int hd_thread_start(void *(*body)(void *), void *argument);

/* Can a thread be started now? Asked before Ruby is told to: up to 3.3 it goes on with one that could not be started
 * as if it could, and hands it the GVL for good. */
bool hd_thread_can_start(void);
