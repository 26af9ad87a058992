/* The hooks fiber (Fiber.schedule) and yield, and the switches that Fiber#raise and Fiber#kill need. */
#include <string.h>

#include "park.h"

static VALUE cFiber, eFiberError;
static ID id_new;

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

/* An exception that came too late to be raised in this fiber goes with it. */
static void drop_pending(hd_scheduler *scheduler)
{
    if (NIL_P(scheduler->pending)) return;
    rb_hash_delete(scheduler->pending, rb_fiber_current());
    if (RHASH_EMPTY_P(scheduler->pending)) scheduler->pending = Qnil;
}

/* What is to be raised in the thread that runs the scheduler. The first one stays. */
static void raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    if (NIL_P(scheduler->fatal)) scheduler->fatal = error;
    scheduler->check_interrupts = true;
}

static VALUE tell_end(VALUE arguments)
{
    return rb_funcall(((VALUE *)arguments)[0], rb_intern("ended"), 1, ((VALUE *)arguments)[1]);
}

static VALUE jump(VALUE state)
{
    rb_jump_tag((int)state);
}

/* Calls task.ended(returned). What is sent to the thread meanwhile (Thread#raise) is raised where the scheduler runs,
 * and the task, which would never be missed, tells of its end once more. */
static VALUE end_task(VALUE self, VALUE task, VALUE returned)
{
    enum { STRIKES_MAX = 100 };
    hd_scheduler *scheduler = hd_scheduler_get(self);
    VALUE arguments[] = {task, returned}, before = rb_errinfo();
    scheduler->ended = rb_fiber_current();
    for (int strikes = 0, state = 1; state && strikes < STRIKES_MAX; strikes++) {
        rb_protect(tell_end, (VALUE)arguments, &state);
        if (!state) break;
        if (!RTEST(rb_obj_is_kind_of(rb_errinfo(), rb_eException))) /* a kill */
            rb_ensure(jump, (VALUE)state, tell_end, (VALUE)arguments);
        raise_at_home(scheduler, rb_errinfo());
        rb_set_errinfo(before);
    }
    RB_GC_GUARD(task);
    return Qnil;
}

/* Has the task of this fiber, which is about to end, told of its end? */
static bool has_ended(hd_scheduler *scheduler)
{
    if (scheduler->ended != rb_fiber_current()) return false;
    scheduler->ended = Qnil;
    return true;
}

/* The body of every scheduled fiber. It returns when the block is done, so that the fiber really ends and gives
 * its stack back. An exception does not end the loop: SystemExit and Interrupt are raised in the thread that runs
 * the scheduler, as is what strikes a task that has told of its end; any other is reported as Ruby does for a
 * thread. */
static VALUE fiber_body(RB_BLOCK_CALL_FUNC_ARGLIST(block, self))
{
    (void)argc, (void)argv, (void)blockarg;
    ((hd_scheduler *)RTYPEDDATA_GET_DATA(self))->starting = false;
    int state = 0;
    unsigned generation = hd_fork_generation;
    rb_protect(call_block, block, &state);
    bool ended = has_ended(RTYPEDDATA_GET_DATA(self));
    if (generation == hd_fork_generation) drop_pending(RTYPEDDATA_GET_DATA(self));
    if (!state) return Qnil;
    VALUE error = rb_errinfo();
    if (!RTEST(rb_obj_is_kind_of(error, rb_eException))) rb_jump_tag(state); /* Fiber#kill, Thread#kill */
    if (generation != hd_fork_generation) rb_jump_tag(state); /* in the child this is the root fiber: Ruby exits */
    rb_set_errinfo(Qnil);
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (scheduler && (ended || must_reach_thread(error)))
        raise_at_home(scheduler, error);
    else if (!RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled")))))
        rb_protect(report, error, &state);
    rb_set_errinfo(Qnil);
    return Qnil;
}

VALUE hd_fiber_body(VALUE self)
{
    return rb_proc_new(fiber_body, self);
}

typedef struct {
    hd_scheduler *scheduler;
    VALUE fiber, block;
} start_call;

static VALUE start(VALUE pointer)
{
    start_call *call = (void *)pointer;
    call->scheduler->starting = true;
    call->scheduler->root = call->fiber;
    VALUE result = rb_fiber_transfer(call->fiber, 1, &call->block);
    RB_GC_GUARD(call->fiber); /* see transfer_to in park.c */
    return result;
}

/* The stacks of fibers that have ended come back only with the fiber objects, so when none could be had, a
 * collection may bring some. Set when that was not enough: the next start collects first. Any thread may set it. */
static bool stacks_ran_out;

static void collect_stacks(void)
{
    stacks_ran_out = false;
    rb_funcall(rb_mGC, rb_intern("start"), 0); /* rb_gc_start would heed GC.disable */
}

static VALUE no_stack(VALUE pointer, VALUE error)
{
    if (((start_call *)pointer)->scheduler->starting) stacks_ran_out = true;
    rb_exc_raise(error);
}

/* Not tried again from a blocking fiber: the failed switch has left Ruby's count of blocking fibers too low (cont.c,
 * fiber_switch), and another one would lower it again. */
static VALUE start_after_gc(VALUE pointer, VALUE error)
{
    bool blocking = RTEST(rb_funcall(rb_fiber_current(), rb_intern("blocking?"), 0));
    if (blocking || !((start_call *)pointer)->scheduler->starting) no_stack(pointer, error);
    collect_stacks();
    return rb_rescue2(start, pointer, no_stack, pointer, eFiberError, (VALUE)0);
}

static VALUE start_or_retry(VALUE pointer)
{
    if (RB_UNLIKELY(stacks_ran_out)) collect_stacks();
    return rb_rescue2(start, pointer, start_after_gc, pointer, eFiberError, (VALUE)0);
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
    start_call call = {scheduler, rb_funcall_with_block(cFiber, id_new, 0, NULL, scheduler->fiber_body), block};
    bool front = ++scheduler->starts % STARTS_IN_A_ROW != 0;
    if (!front) hd_reactor_poll_now(&scheduler->reactor);
    hd_park_ready(scheduler, front, start_or_retry, (VALUE)&call);
    return call.fiber;
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
    int keywords;
} super_call;

static VALUE call_super(VALUE pointer)
{
    super_call *call = (void *)pointer;
    return rb_call_super_kw(call->argc, call->argv, call->keywords);
}

/* Has it resumed another fiber, which Heddle may have parked? Ruby strikes that one then, and tells it only here. */
static bool resumes_another(VALUE fiber)
{
    VALUE text = rb_inspect(fiber);
    return strstr(StringValueCStr(text), " by resuming)") != NULL;
}

/* Prepended to Fiber#raise and Fiber#kill. Plain CRuby transfers to a fiber that Heddle parked, and when that
 * ends, control goes to the root: the caller would be lost. It is queued first. */
static VALUE fiber_raise_or_kill(int argc, VALUE *argv, VALUE fiber)
{
    super_call call = {argc, argv, rb_keyword_given_p() ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS};
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || fiber == rb_fiber_current() || !scheduler->reactor.backend ||
        (!hd_wait_of(scheduler, fiber) && !resumes_another(fiber)))
        return call_super((VALUE)&call);
    return hd_park_ready(scheduler, true, call_super, (VALUE)&call);
}

void hd_init_hooks_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_const_get(rb_cObject, rb_intern("Fiber"));
    eFiberError = rb_const_get(rb_cObject, rb_intern("FiberError"));
    rb_gc_register_mark_object(cFiber);
    rb_gc_register_mark_object(eFiberError);
    rb_define_method(hd_cScheduler, "fiber", hook_fiber, -1);
    rb_define_method(hd_cScheduler, "yield", hook_yield, 0);
    rb_define_private_method(hd_cScheduler, "end_task", end_task, 2);
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "FiberRaise");
    rb_define_method(extension, "raise", fiber_raise_or_kill, -1);
    rb_define_method(extension, "kill", fiber_raise_or_kill, -1);
}
