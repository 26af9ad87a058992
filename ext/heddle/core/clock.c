/* The monotonic clock of clock.h. */
#include "clock.h"

#include <stddef.h>
#include <time.h>

static int64_t (*replacement)(void);
static _Thread_local int64_t own_ns; /* the time of this thread's own clock; 0: it has none */

int64_t hd_clock_machine(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * HD_NS_PER_SECOND + now.tv_nsec;
}

int64_t hd_clock_now(void)
{
    return replacement ? replacement() : hd_clock_machine();
}

int64_t hd_clock_wall_seconds(void)
{
    return own_ns ? own_ns / HD_NS_PER_SECOND : time(NULL);
}

void hd_clock_replace(int64_t (*now)(void))
{
    replacement = now;
}

static int64_t own_or_machine(void)
{
    return own_ns ? own_ns : hd_clock_machine();
}

void hd_clock_own(int64_t now_ns)
{
    own_ns = now_ns;
    if (now_ns) hd_clock_replace(own_or_machine); /* for good: other threads may still have such a clock */
}
