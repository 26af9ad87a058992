/* The hooks fiber (Fiber.schedule) and yield, and the switches that Fiber#raise and Fiber#kill need. */
#include <string.h>

#include "fibers/fiber_stacks.h"
#include "fibers/home.h"
#include "fibers/loop.h"
#include "fibers/new_fiber.h"
#include "fibers/park.h"
#include "fibers/pending/strike.h"
#include "fibers/thread_calls.h"
#include "ruby/caught.h"
#include "ruby/core_ext.h"
#include "ruby/fiber_insides.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static ID id_waiters, id_finished, id_block, id_run;

static bool must_reach_thread(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_eSystemExit)) || RTEST(rb_obj_is_kind_of(error, rb_eSignal)) ||
           RTEST(rb_obj_is_kind_of(error, rb_eNoMemError)) || RTEST(rb_obj_is_kind_of(error, rb_eFatal));
}

static VALUE report(VALUE error)
{
    VALUE report = rb_const_get(hd_mHeddle, rb_intern("ErrorReport"));
    return rb_funcall(report, rb_intern("print_of_fiber"), 1, error);
}

static VALUE tell_end(VALUE task)
{
    return rb_funcall(task, rb_intern("ended"), 0);
}

static VALUE jump(VALUE state)
{
    rb_jump_tag((int)state);
}

/* A signal handler that waits while the task ends may be cancelled with it. That is not reported. */
static bool is_cancel(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))));
}

/* Calls task.ended. What is sent to the thread meanwhile (Thread#raise) is raised where the scheduler runs,
 * and the task, which would never be missed, tells of its end once more. */
static VALUE end_task(VALUE self, VALUE task)
{
    enum { STRIKES_MAX = 100 };
    hd_scheduler *scheduler = hd_scheduler_get(self);
    scheduler->fibers.ended = rb_fiber_current();
    for (int strikes = 0; strikes < STRIKES_MAX; strikes++) {
        hd_caught caught;
        hd_catch(tell_end, task, &caught);
        if (!caught.state) break;
        if (NIL_P(caught.exception)) rb_ensure(jump, (VALUE)caught.state, tell_end, task); /* a kill */
        if (!is_cancel(caught.exception)) hd_raise_at_home(scheduler, caught.exception);
    }
    RB_GC_GUARD(task);
    return Qnil;
}

static VALUE run_task(VALUE task)
{
    return rb_funcall(task, id_run, 0);
}

/* (The child of a fork has no scheduler.) */
static VALUE end_of_run(VALUE task)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler ? end_task(scheduler->self, task) : tell_end(task);
}

/* What a fiber runs: a block, or a task. No signal's handler runs between the task's run and its end. */
static VALUE run_work(VALUE work)
{
    if (RTEST(rb_obj_is_proc(work))) return rb_proc_call_with_block(work, 0, NULL, Qnil);
    return rb_ensure(run_task, work, end_of_run, work);
}

/* What those who wait for the task wait for: the first that was offered. No other thread runs in between, and a signal
 * handler may wait, too: a Mutex would not let it. */
static VALUE waiters_of(VALUE self, VALUE task, VALUE offered)
{
    (void)self;
    VALUE waiters = rb_attr_get(task, id_waiters);
    return NIL_P(waiters) ? rb_ivar_set(task, id_waiters, offered) : waiters;
}

/* Has the task of this fiber, which is about to end, told of its end? */
static bool has_ended(hd_scheduler *scheduler, VALUE work)
{
    if (scheduler->fibers.ended != rb_fiber_current())
        return !RTEST(rb_obj_is_proc(work)) && RTEST(rb_attr_get(work, id_finished));
    scheduler->fibers.ended = Qnil;
    return true;
}

/* What is to be done with the exception that has ended a fiber. */
static void end_with(hd_scheduler *scheduler, VALUE error, bool ended)
{
    int ignored;
    rb_set_errinfo(Qnil);
    if (ended && is_cancel(error)) return;
    if (scheduler && (ended || must_reach_thread(error) || hd_thread_was_sent(scheduler, error)))
        hd_raise_at_home(scheduler, error);
    else
        rb_protect(report, error, &ignored);
    rb_set_errinfo(Qnil);
}

/* The body of every scheduled fiber. It returns when the block is done, so that the fiber really ends and gives
 * its stack back. An exception does not end the loop: SystemExit and Interrupt are raised in the thread that runs
 * the scheduler, as is what was sent to that by Thread#raise, and what strikes a task that has told of its end; any
 * other is reported as Ruby does for a thread. */
static VALUE fiber_body(RB_BLOCK_CALL_FUNC_ARGLIST(work, self))
{
    (void)argc, (void)argv, (void)blockarg;
    hd_scheduler *scheduler = RTYPEDDATA_GET_DATA(self);
    scheduler->fibers.starting = false;
    int state = 0;
    unsigned generation = hd_fork_generation;
    VALUE block = RTEST(rb_obj_is_proc(work)) ? work : rb_attr_get(work, id_block);
    if (!NIL_P(block)) hd_match_apart(block);
    rb_protect(run_work, work, &state);
    bool ended = has_ended(scheduler, work), child = hd_forked_since(generation);
    hd_stack_is_done_with();
    if (!child) hd_strikes_drop(scheduler);
    /* A kill goes on; in the child this is the root fiber: Ruby exits. */
    bool jumps = state && (child || !hd_is_exception(rb_errinfo()));
    if (state && !jumps) end_with(hd_scheduler_of_thread(), rb_errinfo(), ended);
    scheduler->running.task = Qnil;
    if (jumps) rb_jump_tag(state);
    if (!child) hd_end_at_home(scheduler);
    return Qnil;
}

typedef struct {
    hd_scheduler *scheduler;
    VALUE fiber, work, task;
} start_call;

static VALUE start(VALUE pointer)
{
    start_call *call = (void *)pointer;
    hd_scheduler *scheduler = call->scheduler;
    scheduler->fibers.starting = true;
    scheduler->running.root = call->fiber;
    scheduler->running.scheduled = true;
    scheduler->reactor.now_ns = hd_clock_now();
    hd_reactor_begin_turn(&scheduler->reactor);
    scheduler->running.task = call->task;
    VALUE result = rb_fiber_transfer(call->fiber, 1, &call->work);
    RB_GC_GUARD(call->fiber); /* see switch_to in loop.c */
    return result;
}

static VALUE start_with_stack(VALUE pointer)
{
    return hd_with_stack(((start_call *)pointer)->scheduler, start, pointer);
}

/* Runs switch_away(argument) with the current fiber in the ready queue. */
static VALUE run_instead(hd_scheduler *scheduler, hd_place place, VALUE (*switch_away)(VALUE), VALUE argument)
{
    VALUE result = Qnil;
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = place,
                          .switch_away = switch_away, .argument = argument, .result = &result};
    hd_park(scheduler, &request);
    return result;
}

/* A loop that starts a thousand fibers would hold up the first until the last has begun, with all their stacks
 * alive: every so often the fibers that events have woken run before the caller goes on. Each has a turn of its own,
 * so that it comes as far as its first wait before the next one begins. What it computes there does not count for the
 * caller. Otherwise a task that accepts connections would go behind all the busy ones after each accept. */
enum { STARTS_IN_A_ROW = 32 };

/* Runs the work in a new fiber, at once, until it parks or ends; then the caller goes on. */
static VALUE start_fiber(hd_scheduler *scheduler, VALUE work, VALUE task)
{
    if (NIL_P(scheduler->fibers.body)) scheduler->fibers.body = rb_proc_new(fiber_body, scheduler->self);
    start_call call = {scheduler, hd_new_fiber(scheduler, scheduler->fibers.body), work, task};
    bool first = ++scheduler->fibers.count % STARTS_IN_A_ROW != 0;
    if (!first) hd_loop_poll(scheduler);
    run_instead(scheduler, first ? HD_IN_FRONT : HD_IN_LINE, start_with_stack, (VALUE)&call);
    if (first) hd_reactor_begin_turn_later(&scheduler->reactor);
    return call.fiber;
}

/* Runs a task's method run in a new fiber of the scheduler. (A method of the task's: one of the scheduler's that a
 * refinement makes public costs twice as much to call.) */
static VALUE task_start_fiber(VALUE task, VALUE scheduler)
{
    return start_fiber(hd_scheduler_ready(scheduler), task, task);
}

/* @private
 * @return [Heddle::Task, nil] the one that runs on this thread, or in which the fiber that runs was started */
static VALUE task_s_here(VALUE class)
{
    (void)class;
    const hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler ? scheduler->running.task : Qnil;
}

/* @private For a task that runs this block within another one.
 * @param block [#call] nothing is done for one that is no Proc */
static VALUE task_s_match_apart(VALUE class, VALUE block)
{
    (void)class;
    if (RTEST(rb_obj_is_proc(block))) hd_match_apart(block);
    return Qnil;
}

/* The same as start_fiber for a block.
 *
 * @overload fiber(*, &block)
 *   @return [Fiber]
 * @see https://docs.ruby-lang.org/en/master/Fiber/Scheduler.html#method-i-fiber */
static VALUE hook_fiber(int argc, VALUE *argv, VALUE self)
{
    VALUE block;
    rb_scan_args(argc, argv, "0*&", NULL, &block);
    if (NIL_P(block)) rb_raise(rb_eArgError, "a block is needed");
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    return start_fiber(scheduler, block, scheduler->running.task);
}

/* Lets the other fibers run (4.0+: Ruby calls it after a signal; a fiber that waits or turns the loop does that
 * anyway).
 *
 * @return [void] */
static VALUE hook_yield(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    VALUE fiber = rb_fiber_current();
    bool turns = scheduler->home.waits && scheduler->home.fiber == fiber;
    if (!turns && !hd_wait_of(scheduler, fiber)) hd_yield(scheduler);
    return Qnil;
}

typedef struct {
    VALUE fiber;
    ID kept; /* Ruby's own method */
    int argc;
    VALUE *argv;
    int keywords;
} original_call;

static VALUE call_original(VALUE pointer)
{
    original_call *call = (void *)pointer;
    return rb_funcallv_kw(call->fiber, call->kept, call->argc, call->argv, call->keywords);
}

/* In place of Fiber#raise and Fiber#kill. Plain CRuby transfers to a fiber that Heddle parked, and when that
 * ends, control goes to the root: the caller would be lost. It is queued first. */
static VALUE strike(VALUE fiber, ID kept, int argc, VALUE *argv)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    int keywords = rb_keyword_given_p() ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS;
    original_call call = {fiber, kept, argc, argv, keywords};
    if (!scheduler || fiber == rb_fiber_current() || !scheduler->reactor.backend ||
        (!hd_wait_of(scheduler, fiber) && !hd_resumes_another(fiber)))
        return call_original((VALUE)&call);
    return run_instead(scheduler, HD_IN_FRONT, call_original, (VALUE)&call);
}

static VALUE fiber_raise(int argc, VALUE *argv, VALUE fiber)
{
    return strike(fiber, HD_KEPT("raise"), argc, argv);
}

static VALUE fiber_kill(VALUE fiber)
{
    return strike(fiber, HD_KEPT("kill"), 0, NULL);
}

void hd_init_hooks_fiber(void)
{
    id_waiters = rb_intern("@waiters");
    id_finished = rb_intern("@finished");
    id_block = rb_intern("@block");
    id_run = rb_intern("run");
    rb_define_method(hd_cScheduler, "fiber", hook_fiber, -1);
    rb_define_method(hd_cScheduler, "yield", hook_yield, 0);
    VALUE cTask = rb_define_class_under(hd_mHeddle, "Task", rb_cObject);
    rb_define_private_method(cTask, "start_fiber", task_start_fiber, 1);
    rb_define_singleton_method(cTask, "here", task_s_here, 0);
    rb_define_singleton_method(cTask, "match_apart", task_s_match_apart, 1);
    rb_define_private_method(hd_cScheduler, "end_task", end_task, 1);
    rb_define_private_method(hd_cScheduler, "waiters_of", waiters_of, 2);
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "FiberRaise");
    rb_define_method(extension, "raise", fiber_raise, -1);
    rb_define_method(extension, "kill", fiber_kill, 0);
}
