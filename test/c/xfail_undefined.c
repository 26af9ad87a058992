/* Proof that undefined behaviour is seen: a deadline that overflows.
 * Caught by: signed integer overflow */
#include "core/clock.h"
#include <stdlib.h>

int main(void)
{
    volatile int64_t now_ns = hd_clock_now();
    return now_ns + HD_NO_DEADLINE == 0;
}
