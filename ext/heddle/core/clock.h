/* The only source of time: monotonic nanoseconds. Tests and the simulated backend replace it. A thread may have a clock
 * of its own, for a test of a program: see fibers/virtual_clock.h. */
#pragma once

#include <stdint.h>

#define HD_NS_PER_SECOND INT64_C(1000000000)
#define HD_NS_PER_MS INT64_C(1000000)
#define HD_NO_DEADLINE INT64_MAX

int64_t hd_clock_now(void);

/* Returns the time of the machine, also in a thread that has a clock of its own. */
int64_t hd_clock_machine(void);

/* Sets the time of a clock that only the calling thread sees, and that stands still; 0: it sees the machine's again. */
void hd_clock_own(int64_t now_ns);

/* The time on the wall clock, in seconds. It may be set back. A thread's own clock takes its place. */
int64_t hd_clock_wall_seconds(void);

/* Replaces the clock (NULL: the real one again). Only test builds call this. */
void hd_clock_replace(int64_t (*now)(void));

/* Returns the deadline that lies timeout_ns ahead of now. A far one never overflows. */
static inline int64_t hd_clock_deadline(int64_t now_ns, int64_t timeout_ns)
{
    return timeout_ns >= HD_NO_DEADLINE - now_ns ? HD_NO_DEADLINE : now_ns + timeout_ns;
}

static inline int64_t hd_earlier(int64_t one_ns, int64_t other_ns)
{
    return one_ns < other_ns ? one_ns : other_ns;
}

/* Returns a timeout for poll(2), in milliseconds and rounded up; -1 for HD_NO_DEADLINE. */
static inline int hd_clock_timeout_ms(int64_t timeout_ns)
{
    if (timeout_ns == HD_NO_DEADLINE) return -1;
    int64_t rounded_up = (timeout_ns + HD_NS_PER_MS - 1) / HD_NS_PER_MS;
    return rounded_up > INT32_MAX ? INT32_MAX : (int)rounded_up;
}

/* Returns the timeout for a poll(2) that begins now and ends at this time. */
static inline int hd_clock_ms_until(int64_t deadline_ns)
{
    if (deadline_ns == HD_NO_DEADLINE) return -1;
    int64_t left_ns = deadline_ns - hd_clock_now();
    return left_ns < 0 ? 0 : hd_clock_timeout_ms(left_ns);
}
