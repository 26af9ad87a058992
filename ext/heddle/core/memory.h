/* The size of a block of malloc. */
#pragma once

#include <stddef.h>

#if defined(__APPLE__)
#include <malloc/malloc.h>
#elif defined(__FreeBSD__)
#include <malloc_np.h>
#elif __has_include(<malloc.h>)
#include <malloc.h>
#endif

/* Returns how many bytes of the block may be used; 0: this system does not say it. */
static inline size_t hd_memory_size(const void *block)
{
#if defined(__APPLE__)
    return malloc_size(block);
#elif defined(__linux__) || defined(__FreeBSD__)
    return malloc_usable_size((void *)block);
#else
    (void)block;
    return 0;
#endif
}
