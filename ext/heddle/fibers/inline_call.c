/* See inline_call.h. */
#include "inline_call.h"

#include "fibers/pending/pending.h"
#include "ruby/init.h"

static VALUE pop(VALUE frame)
{
    hd_frame_pop((hd_frame *)frame);
    return Qnil;
}

VALUE hd_call_inline(hd_scheduler *scheduler, hd_frame_kind kind, VALUE (*function)(VALUE), VALUE argument)
{
    hd_frame frame;
    hd_frame_push(&frame, scheduler, kind);
    return rb_ensure(function, argument, pop, (VALUE)&frame);
}

/* Runs the block. Operations that it passes to blocking_operation_wait meanwhile run inline. */
static VALUE scheduler_inline(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_pending_raise_overdue(scheduler);
    return hd_call_inline(scheduler, HD_FRAME_INLINE, rb_yield, Qundef);
}

static VALUE scheduler_inline_p(VALUE self)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    VALUE fiber = rb_fiber_current();
    return HD_BOOL(hd_frame_find(scheduler, fiber, HD_FRAME_INLINE) || hd_frame_find(scheduler, fiber, HD_FRAME_CLOSE));
}

void hd_init_inline_call(void)
{
    rb_define_private_method(hd_cScheduler, "inline", scheduler_inline, 0);
    rb_define_private_method(hd_cScheduler, "inline?", scheduler_inline_p, 0);
}
