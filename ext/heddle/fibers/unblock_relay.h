/* What a Mutex, a Queue or a ConditionVariable hands to a fiber that does not wait any more. */
#pragma once

#include "ruby/ruby_internals.h"
#include "scheduler.h"

/* As rb_obj_is_kind_of. A blocker may be an object that Ruby hides. */
bool hd_is_a(VALUE object, VALUE class);

/* The types of data that Ruby's Mutex and Thread have, and their subclasses: a comparison takes a few instructions. */
extern const rb_data_type_t *hd_mutex_type, *hd_thread_type;

/* An unblock has come for a wait that is over already: an exception (a cancel, a timeout) is on its way to the fiber.
 * Ruby has told this fiber alone, and has forgotten it, so whoever waits behind it would wait for ever. */
void hd_relay_unblock(hd_scheduler *scheduler, hd_wait *wait, VALUE blocker);

/* The same for a fiber that was unblocked, but is struck before it runs. */
void hd_relay_wake(hd_scheduler *scheduler, const hd_wait *wait);
