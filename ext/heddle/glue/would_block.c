/* IO#read_nonblock calls the io_read hook exactly as the blocking methods do (Ruby up to 4.0), so the hook cannot
 * tell that it must not wait. The method is prepended: it leaves a mark that the hook sees. */
#include "would_block.h"

typedef struct {
    int argc;
    VALUE *argv;
    hd_scheduler *scheduler;
    VALUE before;
} marked_call;

static VALUE call_super(VALUE pointer)
{
    marked_call *call = (void *)pointer;
    return rb_call_super_kw(call->argc, call->argv, RB_PASS_CALLED_KEYWORDS);
}

static VALUE unmark(VALUE pointer)
{
    marked_call *call = (void *)pointer;
    call->scheduler->would_block_fiber = call->before;
    return Qnil;
}

/* Prepended to IO#read_nonblock and ARGF.class#read_nonblock; without a Heddle scheduler it is plain super. */
static VALUE read_nonblock(int argc, VALUE *argv, VALUE io)
{
    (void)io;
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler) return rb_call_super_kw(argc, argv, RB_PASS_CALLED_KEYWORDS);
    marked_call call = {argc, argv, scheduler, scheduler->would_block_fiber};
    scheduler->would_block_fiber = rb_fiber_current();
    return rb_ensure(call_super, (VALUE)&call, unmark, (VALUE)&call);
}

bool hd_would_block_active(const hd_scheduler *scheduler)
{
    return !NIL_P(scheduler->would_block_fiber) && scheduler->would_block_fiber == rb_fiber_current();
}

void hd_init_would_block(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "ReadNonblock");
    rb_define_method(extension, "read_nonblock", read_nonblock, -1);
}
