/* See home_waits.h. */
#include "home_waits.h"

#include "ruby/ruby_internals.h"

VALUE hd_home_position(const hd_scheduler *scheduler)
{
    if (scheduler->home.top) return (VALUE)hd_wait_fiber(scheduler->home.top);
    return scheduler->home.waits ? scheduler->home.fiber : Qnil;
}

void hd_home_wait_begins(hd_scheduler *scheduler, hd_wait *wait)
{
    if ((VALUE)wait->root != scheduler->home.fiber) return;
    wait->below = scheduler->home.top;
    scheduler->home.top = wait;
}

/* Takes a wait out of the list. It is not the last one if a fiber that home has entered waits, and another fiber has
 * entered home meanwhile. */
void hd_home_wait_ends(hd_scheduler *scheduler, const hd_wait *wait)
{
    hd_wait **place = &scheduler->home.top;
    while (*place && *place != wait) place = &(*place)->below;
    if (*place) *place = wait->below;
}

bool hd_home_wait_is_covered(const hd_scheduler *scheduler, const hd_wait *wait)
{
    const hd_wait *top = scheduler->home.top;
    if (RB_LIKELY(!top || top == wait || (VALUE)wait->root != scheduler->home.fiber)) return false;
    return hd_wait_fiber(wait) == hd_wait_fiber(top) || hd_resumes_another((VALUE)hd_wait_fiber(wait));
}
