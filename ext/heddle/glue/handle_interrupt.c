/* The method in place of Thread.handle_interrupt. */

#include "core_ext.h"
#include "init.h"
#include "interrupt_mask.h"
#include "strike.h"

static void raise_unmasked(hd_scheduler *scheduler)
{
    hd_strikes_raise(scheduler, HD_MASK_IMMEDIATE, HD_ALL_STRIKES);
}

/* (Only a public method can be given the caller's block as it is.) */
static VALUE call_original(int argc, const VALUE *argv)
{
    return rb_funcall_passing_block(rb_cThread, HD_KEPT("handle_interrupt"), argc, argv);
}

static VALUE call_masked(VALUE pointer)
{
    hd_mask_frame *mask = (void *)pointer;
    raise_unmasked(mask->frame.scheduler);
    return call_original(1, &mask->timings);
}

typedef struct {
    hd_mask_frame mask;
    bool valid; /* it was not begun in the parent of a fork */
} masked_call;

static VALUE end(VALUE pointer)
{
    ((masked_call *)pointer)->valid = hd_interrupt_mask_end(&((masked_call *)pointer)->mask);
    return Qnil;
}

/* In place of Thread.handle_interrupt. */
static VALUE handle_interrupt(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || argc != 1 || !RB_TYPE_P(argv[0], T_HASH)) return call_original(argc, argv);
    masked_call block;
    hd_interrupt_mask_begin(&block.mask, scheduler, argv[0]);
    VALUE value = rb_ensure(call_masked, (VALUE)&block.mask, end, (VALUE)&block);
    if (!block.valid) return value;
    /* As Ruby does, the end of a mask raises what came in the meantime. (The block may not have waited once.) */
    hd_reactor_fire(&scheduler->reactor, hd_clock_now());
    raise_unmasked(scheduler);
    return value;
}

void hd_init_handle_interrupt(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "HandleInterrupt");
    rb_define_method(extension, "handle_interrupt", handle_interrupt, -1);
}
