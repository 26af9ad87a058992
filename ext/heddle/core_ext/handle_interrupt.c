/* Replaces Thread.handle_interrupt, and defines Heddle.shield. */

#include "fibers/pending/interrupt_mask.h"
#include "fibers/pending/pending.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"

static void raise_unmasked(hd_scheduler *scheduler)
{
    hd_pending_raise(scheduler, HD_MASK_IMMEDIATE, HD_ALL_PENDING);
}

/* Calls Ruby's own method. Only a public method can be given the caller's block as it is. */
static VALUE call_original(int argc, const VALUE *argv)
{
    return rb_funcall_passing_block(rb_cThread, HD_KEPT("handle_interrupt"), argc, argv);
}

static VALUE call_masked(VALUE pointer)
{
    hd_mask_frame *mask = (void *)pointer;
    /* When the thread must end, no mask holds anything back, but the value of the block must not get lost. */
    if (!mask->frame.scheduler->masks.ended) raise_unmasked(mask->frame.scheduler);
    return call_original(1, &mask->timings);
}

static VALUE call_inside(hd_mask_frame *mask, hd_scheduler *scheduler, VALUE timings, VALUE (*call)(VALUE))
{
    hd_interrupt_mask_begin(mask, scheduler, timings);
    return rb_ensure(call, (VALUE)mask, hd_interrupt_mask_end, (VALUE)mask);
}

static VALUE call_in_mask(hd_scheduler *scheduler, bool shield, VALUE timings, VALUE (*call)(VALUE))
{
    hd_mask_frame mask = {.shield = shield};
    VALUE value = call_inside(&mask, scheduler, timings, call);
    if (mask.forked) return value;
    /* The end of a mask raises the exceptions that came in the meantime, as in Ruby. The block may not have waited
     * once, so the timers are looked at first. */
    hd_reactor_fire(&scheduler->reactor, hd_clock_now());
    raise_unmasked(scheduler);
    return value;
}

/* Replaces Thread.handle_interrupt. */
static VALUE handle_interrupt(int argc, VALUE *argv, VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || argc != 1 || !RB_TYPE_P(argv[0], T_HASH)) return call_original(argc, argv);
    return call_in_mask(scheduler, false, argv[0], call_masked);
}

/* Runs the block, in which such exceptions are raised only if they come from inside. Ruby's own masks, which hold for
 * the whole thread, are not asked: a cancel or a limit of a fiber is not an interrupt of the thread. */
static VALUE scheduler_shield(VALUE self, VALUE timings)
{
    return call_in_mask(hd_scheduler_get(self), true, timings, rb_yield);
}

/* Runs the block as shield does. But the end raises nothing, because the caller has another exception to raise. An
 * exception that was held back is raised at the next wait. */
static VALUE scheduler_hold_back(VALUE self, VALUE timings)
{
    hd_mask_frame mask = {.shield = true};
    return call_inside(&mask, hd_scheduler_get(self), timings, rb_yield);
}

void hd_init_handle_interrupt(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "HandleInterrupt");
    rb_define_method(extension, "handle_interrupt", handle_interrupt, -1);
    rb_define_private_method(hd_cScheduler, "shield", scheduler_shield, 1);
    rb_define_private_method(hd_cScheduler, "hold_back", scheduler_hold_back, 1);
}
