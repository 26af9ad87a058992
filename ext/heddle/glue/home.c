/* See home.h. */
#include "home.h"

#include "init.h"
#include "caught.h"
#include "fiber_stacks.h"
#include "loop.h"
#include "stalls.h"
#include "strike.h"

static VALUE cFiber, cUncaughtThrow, eFiberError;
static ID id_new, id_aset;

/* -- the fiber of the loop ----------------------------------------------------------------------------------- */

/* The tasks that a handler starts belong to the main block. */
static void enter_main_scope(const hd_scheduler *scheduler)
{
    VALUE scope = rb_funcall(scheduler->self, rb_intern("main_scope"), 0);
    if (!NIL_P(scope)) rb_funcall(cFiber, id_aset, 2, ID2SYM(rb_intern("heddle_scope")), scope);
}

/* Makes turns until another fiber does, or home is to go on. */
static VALUE turn_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    VALUE fiber = rb_fiber_current();
    enter_main_scope(scheduler);
    while (scheduler->loop.fiber == fiber) {
        if (RB_UNLIKELY(!scheduler->home.waits || !NIL_P(scheduler->home.fatal)))
            hd_switch_to(scheduler, scheduler->home.fiber, scheduler->home.fiber);
        else
            hd_loop_turn(scheduler, NULL, fiber);
    }
    return Qnil;
}

typedef struct {
    VALUE error, caller;
} backtrace_call;

/* What was raised in the loop has no line of the program, or those of a handler: where Heddle runs belongs to it. */
static VALUE extend_backtrace(VALUE pointer)
{
    VALUE error = ((backtrace_call *)pointer)->error, caller = ((backtrace_call *)pointer)->caller;
    VALUE own = rb_funcall(error, rb_intern("backtrace"), 0), below = rb_funcall(caller, rb_intern("backtrace"), 0);
    if (!RB_TYPE_P(own, T_ARRAY) || !RB_TYPE_P(below, T_ARRAY)) return Qnil;
    return rb_funcall(error, rb_intern("set_backtrace"), 1, rb_ary_plus(own, below));
}

static void raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    int ignored;
    backtrace_call call = {error, scheduler->home.runner};
    rb_set_errinfo(Qnil);
    if (RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))))) return;
    if (!NIL_P(scheduler->home.runner)) rb_protect(extend_backtrace, (VALUE)&call, &ignored);
    rb_set_errinfo(Qnil);
    hd_raise_at_home(scheduler, error);
}

static VALUE loop_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_scheduler *scheduler = RTYPEDDATA_GET_DATA(self);
    VALUE fiber = rb_fiber_current(), runner = scheduler->home.runner;
    unsigned generation = hd_fork_generation;
    scheduler->loop.begun = true;
    do {
        int state = 0;
        rb_protect(turn_loop, (VALUE)scheduler, &state);
        bool child = hd_forked_since(generation);
        if (child && !state) rb_funcall(self, rb_intern("go_on_in_child"), 1, runner);
        if (child) rb_jump_tag(state); /* there this is the root fiber: Ruby exits */
        if (!state) continue;
        if (!hd_is_exception(rb_errinfo())) {
            if (scheduler->loop.fiber == fiber) scheduler->loop.fiber = Qnil;
            rb_jump_tag(state); /* a kill */
        }
        raise_at_home(scheduler, rb_errinfo());
    } while (scheduler->loop.fiber == fiber);
    hd_strikes_drop(scheduler);
    return Qnil;
}

static VALUE make_fiber(rb_block_call_func_t body, VALUE self)
{
    VALUE block = rb_proc_new(body, self), fiber = rb_funcall_with_block(cFiber, id_new, 0, NULL, block);
    RB_GC_GUARD(block);
    return fiber;
}

static VALUE make(VALUE self)
{
    return make_fiber(loop_body, self);
}

static VALUE switch_to_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    hd_switch_to(scheduler, scheduler->loop.fiber, scheduler->loop.fiber);
    return Qnil;
}

/* Ruby had no stack for it: the home fiber turns the loop. */
static VALUE do_without_loop_fiber(VALUE pointer, VALUE error)
{
    hd_scheduler *scheduler = (void *)pointer;
    if (scheduler->loop.begun) rb_exc_raise(error);
    scheduler->loop.fiber = Qnil;
    scheduler->running.root = scheduler->home.fiber;
    hd_stacks_run_out();
    return Qnil;
}

/* Makes it and goes there at once: later there may be no stack for it. */
static void begin_loop_fiber(hd_scheduler *scheduler)
{
    int state = 0;
    VALUE error = rb_errinfo();
    VALUE fiber = rb_protect(make, scheduler->self, &state);
    if (state) {
        rb_set_errinfo(error); /* no memory for it: the home fiber turns the loop */
        return;
    }
    scheduler->loop.fiber = fiber;
    scheduler->loop.begun = false;
    rb_rescue2(switch_to_loop, (VALUE)scheduler, do_without_loop_fiber, (VALUE)scheduler, eFiberError, (VALUE)0);
}

/* Signals' handlers wait for these fibers: see new_fiber.h. */
static void make_ordered_fibers(hd_scheduler *scheduler)
{
    VALUE orders = scheduler->home.orders;
    scheduler->home.orders = Qnil;
    for (long i = 0; i < RARRAY_LEN(orders); i++) {
        VALUE order = rb_ary_entry(orders, i), options = rb_hash_new();
        rb_hash_aset(options, ID2SYM(rb_intern("storage")), rb_ary_entry(order, 1));
        rb_ary_push(order, rb_funcall_with_block_kw(cFiber, id_new, 1, &options, rb_ary_entry(order, 0),
                                                    RB_PASS_KEYWORDS));
    }
    RB_GC_GUARD(orders);
}

/* -- home ---------------------------------------------------------------------------------------------------- */

static VALUE home_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    const hd_reactor *reactor = &scheduler->reactor;
    unsigned generation = reactor->generation;
    scheduler->home.stopped = false;
    while (reactor->waits.count > 0 && !scheduler->home.stopped) {
        if (!NIL_P(scheduler->home.fatal)) hd_raise_fatal(scheduler);
        if (RB_UNLIKELY(!NIL_P(scheduler->home.orders))) make_ordered_fibers(scheduler);
        if (RB_UNLIKELY(NIL_P(scheduler->loop.fiber) && !NIL_P(scheduler->home.runner) && !hd_stacks_ran_out()))
            begin_loop_fiber(scheduler);
        else
            hd_loop_turn(scheduler, NULL, scheduler->home.fiber);
        hd_scheduler_check_fork(scheduler);
        if (reactor->generation != generation) break; /* the child of a fork has nothing to wait for */
    }
    if (!NIL_P(scheduler->home.fatal)) hd_raise_fatal(scheduler);
    return Qnil;
}

static VALUE leave_home(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->running.root = scheduler->home.fiber;
    scheduler->home.fiber = scheduler->loop.fiber = scheduler->running.task = Qnil;
    scheduler->home.waits = scheduler->running.scheduled = false;
    hd_stalls_note_rest(scheduler);
    return Qnil;
}

/* Turns the loop on this fiber, where no signal handler can come. */
static VALUE run_here(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->home.fiber = scheduler->home.last = rb_fiber_current();
    scheduler->home.waits = true;
    return rb_ensure(home_loop, pointer, leave_home, pointer);
}

static VALUE home_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_scheduler *scheduler = RTYPEDDATA_GET_DATA(self);
    int state = 0, ignored;
    enter_main_scope(scheduler);
    rb_protect(run_here, (VALUE)scheduler, &state);
    hd_strikes_drop(scheduler);
    if (!state) return Qnil;
    backtrace_call call = {rb_errinfo(), scheduler->home.runner};
    if (hd_is_exception(call.error) && call.error != scheduler->home.raised) {
        rb_set_errinfo(Qnil);
        rb_protect(extend_backtrace, (VALUE)&call, &ignored);
        rb_set_errinfo(call.error);
    }
    rb_jump_tag(state);
}

static VALUE resume(VALUE fiber)
{
    return rb_fiber_resume(fiber, 0, NULL);
}

/* A signal handler has thrown: it is caught out here, or nowhere. */
static VALUE throw_again(VALUE unused, VALUE error)
{
    (void)unused;
    rb_throw_obj(rb_funcall(error, rb_intern("tag"), 0), rb_funcall(error, rb_intern("value"), 0));
}

static VALUE resume_home(VALUE home)
{
    return rb_rescue2(resume, home, throw_again, Qnil, cUncaughtThrow, (VALUE)0);
}

static VALUE forget_runner(VALUE scheduler)
{
    ((hd_scheduler *)scheduler)->home.runner = ((hd_scheduler *)scheduler)->home.raised = Qnil;
    return Qnil;
}

static void run_with_signals(hd_scheduler *scheduler)
{
    scheduler->home.runner = rb_fiber_current();
    VALUE home = make_fiber(home_body, scheduler->self);
    rb_ensure(resume_home, home, forget_runner, (VALUE)scheduler);
    RB_GC_GUARD(home);
}

void hd_run_until_idle(hd_scheduler *scheduler)
{
    if (hd_scheduler_inside(scheduler)) rb_raise(hd_eError, "the scheduler is running already");
    if (scheduler->thread == rb_thread_main() && !hd_stacks_ran_out())
        run_with_signals(scheduler);
    else
        run_here((VALUE)scheduler);
}

void hd_init_home(void)
{
    id_new = rb_intern("new");
    id_aset = rb_intern("[]=");
    cFiber = rb_path2class("Fiber");
    cUncaughtThrow = rb_path2class("UncaughtThrowError");
    rb_gc_register_mark_object(cFiber);
    rb_gc_register_mark_object(cUncaughtThrow);
    eFiberError = rb_path2class("FiberError");
    rb_gc_register_mark_object(eFiberError);
}
