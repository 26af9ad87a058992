/* What a system call costs on this machine. */
#pragma once

#include <stdint.h>

/* Returns the time in ns that the kernel takes for a system call that does nothing. It is measured at the first call,
 * in about 10 us, or in a millisecond where a tracer slows each call down. */
int64_t hd_call_cost_ns(void);
