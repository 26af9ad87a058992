/* Lets a fiber close an IO that other threads use. IO#close of Ruby sends these threads an IOError and waits until
 * they have left their system calls. It waits with a hidden mutex and kernel_sleep(nil). */
#pragma once

#include "scheduler.h"

/* Is the current fiber about to wait for the users of an IO that it closes? */
bool hd_closer_waits(const hd_scheduler *scheduler);

/* Waits on behalf of a closer; may return early. An exception that ends this wait is raised at the fiber's next
 * wait. Ruby expects no exception here: it would leave the mutex locked, and the other threads linked to the
 * closer's stack. */
void hd_closer_wait(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject);

/* Unlocks the mutex after a thread has left the IO and has woken the closer, holding the mutex. Ruby 3.3 and 3.4
 * raise the IOError in that thread as soon as unblock returns. If the mutex stayed locked, the closer would wait
 * until the thread ends. */
void hd_closer_unblocked(VALUE closer);
