/* The waits of home (home.h) and of the fibers that home has resumed, as a list with the last wait first. A signal's
 * handler may wait on top of the wait that it has interrupted. Only the last wait may go on, because Ruby cannot
 * switch to a fiber that has resumed another one. */
#pragma once

#include "core/wait.h"
#include "scheduler.h"

/* The fiber in which interrupts reach the program, if it waits or turns the loop; else nil. */
VALUE hd_home_position(const hd_scheduler *scheduler);

/* Notes that a wait begins, whose root is set, and that it has ended. Only waits whose root is home are kept. */
void hd_home_wait_begins(hd_scheduler *scheduler, hd_wait *wait);
void hd_home_wait_ends(hd_scheduler *scheduler, const hd_wait *wait);

/* Does a handler, or a fiber that it has resumed, wait on top of this wait? Then the wait's fiber cannot go on yet. */
bool hd_home_wait_is_covered(const hd_scheduler *scheduler, const hd_wait *wait);

/* Does the fiber of home stand in the ready queue because its time slice is over? It must not be disturbed there. */
static inline bool hd_home_computes(const hd_scheduler *scheduler)
{
    return RB_UNLIKELY(scheduler->home.top && scheduler->home.top->sliced);
}
