/* Locks that nobody will ever give back, whatever other threads and signals do: the fiber that wants one is above its
 * holder in its own chain of fibers, the holders wait for each other's locks in a circle, or the holder waits until the
 * task has ended that wants the lock. */
#pragma once

#include "scheduler.h"

/* A fiber is about to wait for the lock. Raises ThreadError, in the words of Ruby, if the fiber that holds it has
 * resumed this one, and waits for it. */
void hd_lock_wanted(hd_scheduler *scheduler, VALUE mutex);

/* Nobody is ready: raises Heddle::Deadlock in the fibers of each circle. True: there was one. Else the time that the
 * loop may sleep is shortened if it is too early for a look. */
bool hd_lock_cycles_break(hd_scheduler *scheduler, int64_t *timeout_ns);
