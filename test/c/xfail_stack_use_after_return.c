/* Proof that the address sanitizer watches stacks: a function leaves its wait parked behind.
 * Caught by: stack-use-after-return */
#include "core/wait.h"
#include "endings.h"
#include <stdlib.h>

__attribute__((noinline)) static void park_and_leave(hd_reactor *reactor)
{
    hd_wait wait;
    hd_wait_begin(&wait, reactor, HD_WAIT_FOR_SLEEP, 8, 1);
}

int main(void)
{
    hd_reactor reactor;
    hd_map ios;
    hd_map_init(&ios);
    hd_reactor_init(&reactor, &ios, 0);
    park_and_leave(&reactor);
    return (int)fire_due(&reactor.timers, 2) - 1;
}
