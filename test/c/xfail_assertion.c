/* Proof that this is the assertion build: HD_VERIFY is on, and the end of a wait that is below another one of its
 * fiber is caught.
 * Caught by: assertion failed */
#include "core/interest.h"
#include <stdlib.h>

int main(void)
{
    hd_reactor reactor;
    hd_map ios;
    hd_wait first, second;
    hd_map_init(&ios);
    hd_reactor_init(&reactor, &ios, 0);
    hd_wait_begin(&first, &reactor, HD_WAIT_FOR_SLEEP, 8, HD_NO_DEADLINE);
    hd_wait_begin(&second, &reactor, HD_WAIT_FOR_SLEEP, 8, HD_NO_DEADLINE);
    hd_wait_end(&first);
    return 0;
}
