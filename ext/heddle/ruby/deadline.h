/* Makes deadlines of the timeouts that Ruby programs pass. */
#pragma once

#include "core/clock.h"
#include "compat.h"

/* Returns the deadline for a timeout in seconds, as Kernel#sleep takes it. nil: no deadline. A negative one is an
 * ArgumentError, a non-number a TypeError, infinity a RangeError. */
int64_t hd_deadline_from(VALUE timeout);

/* Returns IO#timeout; nil for false, because Ruby takes false for no timeout, too. */
VALUE hd_io_timeout(VALUE io);

/* Returns the deadline for a limit, as Queue#pop(timeout:), Thread#join and Timeout take it. A negative one is over
 * at once, and none is too large. A limit that is not a number (NaN) is never over. */
int64_t hd_deadline_of_limit(VALUE limit);
