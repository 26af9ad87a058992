/* The methods of Heddle::Scheduler for Heddle::Testing: see fibers/virtual_clock.h. */
#include "fibers/park.h"
#include "fibers/virtual_clock.h"
#include "ruby/init.h"

/* @private Gives the scheduler a virtual clock, and its ready fibers an order that the seed decides. Called in its
 *   thread, before anything waits there.
 *
 * @param clock [Heddle::Testing::Clock] its owner
 * @param seed [Integer]
 * @param threshold [Float] seconds
 * @raise [Heddle::Error] if the thread does not stay with its native thread, which has the clock */
static VALUE scheduler_test_with(VALUE self, VALUE clock, VALUE seed, VALUE threshold)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    if (!hd_threads_are_pinned())
        rb_raise(hd_eError, "Heddle::Testing.run needs a thread of the main Ractor, without RUBY_MN_THREADS");
    hd_virtual_clock_begin(scheduler, clock, (int64_t)(NUM2DBL(threshold) * HD_NS_PER_SECOND));
    hd_reactor_shuffle(&scheduler->reactor, NUM2ULL(seed));
    return Qnil;
}

/* @private
 * @return [Integer] the time of the virtual clock, in ns */
static VALUE scheduler_virtual_ns(VALUE self)
{
    return LL2NUM(hd_scheduler_get(self)->reactor.now_ns);
}

static VALUE park_idle(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_park(scheduler, &(hd_request){.kind = HD_WAIT_FOR_BLOCK, .subject = scheduler->virtual_clock.owner,
                                     .deadline_ns = HD_NO_DEADLINE});
    return Qnil;
}

static VALUE no_longer_idle(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (scheduler->virtual_clock.idlers) scheduler->virtual_clock.idlers--; /* not in the child of a fork */
    return Qnil;
}

/* @private Waits until all other fibers wait, too. */
static VALUE scheduler_wait_until_idle(VALUE self)
{
    hd_scheduler_get(self)->virtual_clock.idlers++;
    return rb_ensure(park_idle, self, no_longer_idle, self);
}

void hd_init_test_clock(void)
{
    rb_define_private_method(hd_cScheduler, "test_with", scheduler_test_with, 3);
    rb_define_private_method(hd_cScheduler, "virtual_ns", scheduler_virtual_ns, 0);
    rb_define_private_method(hd_cScheduler, "wait_until_idle", scheduler_wait_until_idle, 0);
}
