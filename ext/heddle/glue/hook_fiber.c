/* The hooks fiber (Fiber.schedule) and yield, and the switches that Fiber#raise and Fiber#kill need. */
#include "park.h"

static VALUE call_block(VALUE block)
{
    return rb_proc_call_with_block(block, 0, NULL, Qnil);
}

static bool must_reach_thread(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_eSystemExit)) || RTEST(rb_obj_is_kind_of(error, rb_eSignal)) ||
           RTEST(rb_obj_is_kind_of(error, rb_eNoMemError)) || RTEST(rb_obj_is_kind_of(error, rb_eFatal));
}

static VALUE report(VALUE error)
{
    VALUE report = rb_const_get(hd_cScheduler, rb_intern("ErrorReport"));
    return rb_funcall(report, rb_intern("print"), 1, error);
}

/* The body of every scheduled fiber. It returns when the block is done, so that the fiber really ends and gives
 * its stack back. An exception does not end the loop: SystemExit and Interrupt are raised in the thread that runs
 * the scheduler, any other is reported as Ruby does for a thread. */
static VALUE fiber_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, block))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    int state = 0;
    unsigned generation = hd_fork_generation;
    rb_protect(call_block, block, &state);
    if (!state) return Qnil;
    VALUE error = rb_errinfo();
    if (!RTEST(rb_obj_is_kind_of(error, rb_eException))) rb_jump_tag(state); /* Fiber#kill, Thread#kill */
    if (generation != hd_fork_generation) rb_jump_tag(state); /* in the child this is the root fiber: Ruby exits */
    rb_set_errinfo(Qnil);
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (scheduler && must_reach_thread(error))
        scheduler->fatal = error;
    else if (!RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled")))))
        rb_protect(report, error, &state);
    rb_set_errinfo(Qnil);
    return Qnil;
}

static VALUE start(VALUE fiber)
{
    VALUE result = rb_fiber_transfer(fiber, 0, NULL);
    RB_GC_GUARD(fiber); /* see transfer_to in park.c */
    return result;
}

/* A loop that starts a thousand fibers would hold up the first until the last has begun, with all their stacks
 * alive: every so often the fibers that are ready run before the caller goes on. */
enum { STARTS_IN_A_ROW = 32 };

/* Runs the block in a new fiber, at once, until it parks or ends; then the caller goes on.
 *
 * @return [Fiber]
 * @see https://docs.ruby-lang.org/en/master/Fiber/Scheduler.html#method-i-fiber */
static VALUE hook_fiber(int argc, VALUE *argv, VALUE self)
{
    VALUE block;
    rb_scan_args(argc, argv, "0*&", NULL, &block);
    if (NIL_P(block)) rb_raise(rb_eArgError, "a block is needed");
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    VALUE fiber = rb_fiber_new(fiber_body, block);
    bool front = ++scheduler->starts % STARTS_IN_A_ROW != 0;
    if (!front) hd_reactor_poll_now(&scheduler->reactor);
    hd_park_ready(scheduler, front, start, fiber);
    return fiber;
}

/* Lets the other fibers run (4.0+: Ruby calls it after a signal). */
static VALUE hook_yield(VALUE self)
{
    hd_park_turn(hd_scheduler_ready(self));
    return Qnil;
}

typedef struct {
    int argc;
    VALUE *argv;
} super_call;

static VALUE call_super(VALUE pointer)
{
    super_call *call = (void *)pointer;
    return rb_call_super(call->argc, call->argv);
}

/* Prepended to Fiber#raise and Fiber#kill. Plain CRuby transfers to a fiber that Heddle parked, and when that
 * ends, control goes to the root: the caller would be lost. It is queued first. */
static VALUE fiber_raise_or_kill(int argc, VALUE *argv, VALUE fiber)
{
    super_call call = {argc, argv};
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || fiber == rb_fiber_current() || !scheduler->reactor.backend || !hd_wait_of(scheduler, fiber))
        return rb_call_super(argc, argv);
    return hd_park_ready(scheduler, true, call_super, (VALUE)&call);
}

void hd_init_hooks_fiber(void)
{
    rb_define_method(hd_cScheduler, "fiber", hook_fiber, -1);
    rb_define_method(hd_cScheduler, "yield", hook_yield, 0);
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "FiberRaise");
    rb_define_method(extension, "raise", fiber_raise_or_kill, -1);
    rb_define_method(extension, "kill", fiber_raise_or_kill, -1);
}
