/* See fiber_stacks.h. */
#include "fiber_stacks.h"

#include "core/clock.h"
#include "ruby/init.h"

static VALUE eFiberError;

/* With many fibers a run of the GC takes long, and Ruby needs long to find that it has no stack. Both are worth
 * while only when a part of the fibers has ended, or some time has passed. */
enum { PART = 64 };
#define PAUSE_NS HD_NS_PER_SECOND

/* Any thread may write these fields, and a lost count does no harm. */
static struct {
    bool ran_out;      /* a start has failed, and none has been tried since */
    size_t ended;      /* fibers, ever */
    size_t ended_then; /* when it failed */
    int64_t failed_ns;
} stacks;

void hd_stack_is_done_with(void)
{
    __atomic_add_fetch(&stacks.ended, 1, __ATOMIC_RELAXED);
}

static void collect(void)
{
    rb_funcall(rb_mGC, rb_intern("start"), 0); /* rb_gc_start would heed GC.disable */
}

NORETURN(static void raise_no_stack(const hd_scheduler *scheduler));

static void raise_no_stack(const hd_scheduler *scheduler)
{
    VALUE module = rb_const_get(hd_cScheduler, rb_intern("NoStack"));
    rb_exc_raise(rb_funcall(module, rb_intern("error"), 1, SIZET2NUM(scheduler->reactor.waits.count)));
}

typedef struct {
    hd_scheduler *scheduler;
    VALUE (*start)(VALUE);
    VALUE argument, root; /* root: the caller's */
} stack_call;

static VALUE call_start(VALUE pointer)
{
    const stack_call *call = (void *)pointer;
    return call->start(call->argument);
}

static VALUE give_up(VALUE pointer, VALUE error)
{
    const stack_call *call = (void *)pointer;
    hd_scheduler *scheduler = call->scheduler;
    if (!scheduler->fibers.starting) rb_exc_raise(error); /* the fiber has begun, so this is another error */
    scheduler->fibers.starting = false;
    scheduler->running.root = call->root;
    stacks.ended_then = stacks.ended;
    stacks.failed_ns = hd_clock_machine();
    stacks.ran_out = true;
    raise_no_stack(scheduler);
}

/* Tries again after a run of the GC, but not from a blocking fiber. The failed switch has left Ruby's count of
 * blocking fibers too low (cont.c, fiber_switch), and another one would lower it again. */
static VALUE start_after_gc(VALUE pointer, VALUE error)
{
    bool blocking = RTEST(rb_funcall(rb_fiber_current(), rb_intern("blocking?"), 0));
    if (blocking || !((stack_call *)pointer)->scheduler->fibers.starting) give_up(pointer, error);
    collect();
    return rb_rescue2(call_start, pointer, give_up, pointer, eFiberError, (VALUE)0);
}

/* May a start succeed, though the last one failed? */
static bool may_have_come_back(const hd_scheduler *scheduler)
{
    return stacks.ended - stacks.ended_then > scheduler->reactor.waits.count / PART ||
           hd_clock_machine() - stacks.failed_ns > PAUSE_NS;
}

VALUE hd_with_stack(hd_scheduler *scheduler, VALUE (*start)(VALUE), VALUE argument)
{
    stack_call call = {scheduler, start, argument, scheduler->running.root};
    if (RB_UNLIKELY(stacks.ran_out)) {
        if (!may_have_come_back(scheduler)) raise_no_stack(scheduler);
        stacks.ran_out = false;
        collect();
    }
    return rb_rescue2(call_start, (VALUE)&call, start_after_gc, (VALUE)&call, eFiberError, (VALUE)0);
}

void hd_init_fiber_stacks(void)
{
    eFiberError = rb_path2class("FiberError");
    rb_gc_register_mark_object(eFiberError);
}
