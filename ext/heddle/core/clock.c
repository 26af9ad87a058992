/* The monotonic clock of clock.h. */
#include "clock.h"

#include <stddef.h>
#include <time.h>

static int64_t (*replacement)(void);

int64_t hd_clock_now(void)
{
    if (replacement) return replacement();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * HD_NS_PER_SECOND + now.tv_nsec;
}

int64_t hd_clock_wall_seconds(void)
{
    return time(NULL);
}

void hd_clock_replace(int64_t (*now)(void))
{
    replacement = now;
}
