/* Proof that leaks are seen: maps that are not freed.
 * Caught by: LeakSanitizer: detected memory leaks */
#include "core/map.h"
#include <string.h>

/* Several, for the last one's address may stay behind on the stack. */
__attribute__((noinline)) static void leak(void)
{
    hd_map maps[10];
    for (int i = 0; i < 10; i++) hd_map_init(&maps[i]);
    memset(maps, 0, sizeof(maps));
    __asm__ volatile("" : : "r"(maps) : "memory");
}

int main(void)
{
    leak();
    return 0;
}
