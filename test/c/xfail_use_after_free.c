/* Proof that the address sanitizer watches: a wait that is freed while it is parked.
 * Caught by: heap-use-after-free */
#include "core/wait.h"
#include "endings.h"
#include <stdlib.h>

int main(void)
{
    hd_reactor reactor;
    hd_map ios;
    hd_map_init(&ios);
    hd_reactor_init(&reactor, &ios, 0);
    hd_wait *wait = malloc(sizeof(*wait));
    hd_wait_begin(wait, &reactor, HD_WAIT_FOR_SLEEP, 8, 1);
    free(wait);
    return (int)fire_due(&reactor.timers, 2) - 1;
}
