/* Deadlines from the timeouts that Ruby programs give. */
#pragma once

#include "core/clock.h"
#include "compat.h"

/* nil = none; else seconds as Kernel#sleep takes them (a negative one is an ArgumentError, a non-number a TypeError,
 * infinity a RangeError). */
int64_t hd_deadline_from(VALUE timeout);

/* IO#timeout; nil for false, which Ruby takes for none, too. */
VALUE hd_io_timeout(VALUE io);

/* The same as Queue#pop(timeout:), Thread#join and Timeout take it: one that is negative is over at once, and none is
 * too large. One that is not a number is never over. */
int64_t hd_deadline_of_limit(VALUE limit);
