/* IO#close while other threads use the IO: the closer sends them an IOError and waits until they have left their system
 * calls, by a hidden mutex and kernel_sleep(nil). */
#pragma once

#include "scheduler.h"

/* Is the current fiber about to wait for the users of an IO that it closes? */
bool hd_closer_waits(const hd_scheduler *scheduler);

/* The wait of a closer. It may return early. An exception that would end it is raised at the next wait: Ruby does not
 * expect any there, and would leave the mutex locked, and the other threads linked to the closer's stack. */
void hd_closer_wait(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject);

/* A thread has left the IO and wakes the closer, holding the mutex. Ruby 3.3 and 3.4 raise the IOError in it as soon as
 * unblock returns, with the mutex locked: the closer would wait until that thread ends. So it is unlocked before. */
void hd_closer_unblocked(VALUE closer);
