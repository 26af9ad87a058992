/* See scheduled_fiber.h. */
#include "scheduled_fiber.h"

#include "fiber_stacks.h"
#include "fibers/pending/pending.h"
#include "home.h"
#include "loop.h"
#include "new_fiber.h"
#include "ruby/caught.h"
#include "ruby/fiber_insides.h"
#include "ruby/init.h"
#include "thread_calls.h"
#include "warm_stacks.h"

static ID id_finished, id_block, id_run;

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

/* Is the error a cancel? A signal handler that waits while the task ends may be cancelled with it, and that is not
 * reported. */
static bool is_cancel(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))));
}

void hd_end_task(hd_scheduler *scheduler, VALUE task)
{
    enum { RAISES_MAX = 100 };
    scheduler->fibers.ended = rb_fiber_current();
    for (int raises = 0; raises < RAISES_MAX; raises++) {
        hd_caught caught;
        hd_catch(tell_end, task, &caught);
        if (!caught.state) break;
        if (NIL_P(caught.exception)) rb_ensure(hd_jump, (VALUE)caught.state, tell_end, task); /* it is a kill */
        if (!is_cancel(caught.exception)) hd_raise_at_home(scheduler, caught.exception);
    }
    RB_GC_GUARD(task);
}

static VALUE run_task(VALUE task)
{
    return rb_funcall(task, id_run, 0);
}

/* Ends the run of a task. The child of a fork has no scheduler. */
static VALUE end_of_run(VALUE task)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler) return tell_end(task);
    hd_end_task(scheduler, task);
    return Qnil;
}

/* Runs a block or a task in its fiber. No signal's handler runs between the task's run and its end. */
static VALUE run_work(VALUE work)
{
    if (RTEST(rb_obj_is_proc(work))) return rb_proc_call_with_block(work, 0, NULL, Qnil);
    return rb_ensure(run_task, work, end_of_run, work);
}

/* Has the task of this fiber, which is about to end, recorded its end? */
static bool has_ended(hd_scheduler *scheduler, VALUE work)
{
    if (scheduler->fibers.ended != rb_fiber_current())
        return !RTEST(rb_obj_is_proc(work)) && RTEST(rb_attr_get(work, id_finished));
    scheduler->fibers.ended = Qnil;
    return true;
}

/* Is the error meant for the program: an exit, an interrupt, or sent by Thread#raise? */
static bool is_for_thread(hd_scheduler *scheduler, VALUE error)
{
    return scheduler && (must_reach_thread(error) || hd_thread_was_sent(scheduler, error));
}

/* Passes on the exception that has ended a fiber. While it is reported, another one may come: the handler of the
 * program exits, or a signal does. Returns the state of a kill that came then. */
static int end_with(hd_scheduler *scheduler, VALUE error, bool ended)
{
    rb_set_errinfo(Qnil);
    if (ended && is_cancel(error)) return 0;
    if (!(scheduler && ended) && !is_for_thread(scheduler, error)) {
        hd_caught caught;
        hd_catch(report, error, &caught);
        if (caught.state && NIL_P(caught.exception)) return caught.state;
        rb_set_errinfo(Qnil);
        error = caught.exception;
        if (!is_for_thread(scheduler, error)) return 0;
    }
    hd_raise_at_home(scheduler, error);
    rb_set_errinfo(Qnil);
    return 0;
}

/* The body of every scheduled fiber. It returns when the block has ended, so that the fiber really ends and frees
 * its stack. An exception does not end the loop. Three kinds are raised in the thread that runs the scheduler:
 * SystemExit and Interrupt, what was sent to this thread by Thread#raise, and what is raised in a task that has
 * recorded its end. Any other is reported as Ruby does for a thread. */
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
    if (!child) hd_pending_drop(scheduler);
    /* A kill goes on. In the child this is the root fiber, so Ruby exits. */
    if (state && !child && hd_is_exception(rb_errinfo()))
        state = end_with(hd_scheduler_of_thread(), rb_errinfo(), ended);
    scheduler->running.task = Qnil;
    if (!child) hd_home_look_for_abandoned(scheduler);
    if (state) rb_jump_tag(state);
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
    hd_warm_stacks_note_start();
    scheduler->running.task = call->task;
    VALUE result = rb_fiber_transfer(call->fiber, 1, &call->work);
    RB_GC_GUARD(call->fiber); /* see switch_to in loop.c */
    return result;
}

static VALUE start_with_stack(VALUE pointer)
{
    return hd_with_stack(((start_call *)pointer)->scheduler, start, pointer);
}

VALUE hd_run_instead(hd_scheduler *scheduler, hd_place place, VALUE (*switch_away)(VALUE), VALUE argument)
{
    VALUE result = Qnil;
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = place,
                          .switch_away = switch_away, .argument = argument, .result = &result};
    hd_park(scheduler, &request);
    return result;
}

/* After this number of starts in a row, fibers that events have woken run before the caller goes on. Otherwise a
 * loop that starts a thousand fibers would hold up the first one until the last has begun, with all their stacks
 * alive. Each fiber has a turn of its own, so it comes to its first wait before the next one begins. The time that
 * it computes does not count for the caller. Otherwise a task that accepts connections would go behind all the busy
 * ones after each accept. */
enum { STARTS_IN_A_ROW = 32 };

VALUE hd_start_fiber(hd_scheduler *scheduler, VALUE work, VALUE task)
{
    if (NIL_P(scheduler->fibers.body)) scheduler->fibers.body = rb_proc_new(fiber_body, scheduler->self);
    start_call call = {scheduler, hd_new_fiber(scheduler, scheduler->fibers.body), work, task};
    bool first = ++scheduler->fibers.count % STARTS_IN_A_ROW != 0;
    if (!first) hd_loop_poll(scheduler);
    hd_run_instead(scheduler, first ? HD_IN_FRONT : HD_IN_LINE, start_with_stack, (VALUE)&call);
    if (first) hd_reactor_begin_turn_later(&scheduler->reactor);
    return call.fiber;
}

void hd_init_scheduled_fiber(void)
{
    id_finished = rb_intern("@finished");
    id_block = rb_intern("@block");
    id_run = rb_intern("run");
}
