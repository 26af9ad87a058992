/* Finds locks that can never be given back, whatever other threads and signals do. There are three kinds: the fiber
 * that wants the lock was resumed, directly or not, by its holder; the holders wait for each other's locks in a
 * circle; or the task that wants the lock must end before its holder goes on. */
#pragma once

#include "scheduler.h"

/* Raises ThreadError, in the words of Ruby, if the fiber that holds the lock has resumed the current fiber and waits
 * for it. Called before a fiber waits for a lock. */
void hd_lock_wanted(hd_scheduler *scheduler, VALUE mutex);

/* Called before a fiber waits in a Queue. A holder may begin to wait for the task that wants its lock. */
void hd_task_awaited(hd_scheduler *scheduler, VALUE queue);

/* Called when locks.changed is set, before the loop sleeps. True: it is time for a look. Otherwise it
 * shortens the time that the loop may sleep. */
bool hd_lock_cycles_due(const hd_scheduler *scheduler, int64_t *timeout_ns);

/* Raises Heddle::Deadlock in the fibers of each circle. Called at home, because it may run a method in Ruby, when no
 * fiber is ready. True: it has run one, so the loop must turn once more. */
bool hd_lock_cycles_break(hd_scheduler *scheduler);
