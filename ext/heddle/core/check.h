/* Assertions. HD_ASSERT is cheap, states an invariant and stays on in release builds;
 * HD_VERIFY may walk a structure and is on in the assertion build only (HEDDLE_VARIANT=assert). */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define HD_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Says where an invariant is broken, and ends the process, because memory can no longer be trusted. */
__attribute__((noreturn, cold)) static inline void hd_check_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "heddle: assertion failed: %s (%s:%d). Please report this with the output of `heddle doctor`.\n",
            what, file, line);
    abort();
}

#define HD_ASSERT(condition)                                                                                       \
    do {                                                                                                           \
        if (HD_UNLIKELY(!(condition))) hd_check_failed(#condition, __FILE__, __LINE__);                            \
    } while (0)

#ifdef HEDDLE_ASSERT_BUILD
#define HD_VERIFY(condition) HD_ASSERT(condition)
#else
#define HD_VERIFY(condition) ((void)0)
#endif

#define HD_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
