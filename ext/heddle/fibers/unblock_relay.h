/* Passes on what a Mutex, a Queue or a ConditionVariable hands to a fiber that no longer waits. */
#pragma once

#include "scheduler.h"

/* Does the work of rb_obj_is_kind_of. A blocker may be an object that Ruby hides. */
bool hd_is_a(VALUE object, VALUE class);

/* The types of data that Ruby's Mutex and Thread have, with their subclasses. To compare them takes a few
 * instructions. */
extern const rb_data_type_t *hd_mutex_type, *hd_thread_type;

/* Passes on an unblock that has come for a wait that is over already, because an exception (a cancel, a timeout) is
 * on its way to the fiber. Ruby has notified only this fiber, and has forgotten it. Without a relay the fibers
 * behind it would wait for ever. */
void hd_relay_unblock(hd_scheduler *scheduler, hd_wait *wait, VALUE blocker);

/* Passes on the unblock of a fiber that was woken, but in which an exception is raised before it goes on. */
void hd_relay_wake(hd_scheduler *scheduler, const hd_wait *wait);
