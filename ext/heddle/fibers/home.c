/* See home.h. */
#include "home.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/fiber_insides.h"
#include "ruby/init.h"
#include "fiber_return.h"
#include "home_waits.h"
#include "loop.h"
#include "watch.h"

/* -- the loop --------------------------------------------------------------------------------------------------- */

static void note_turning(hd_scheduler *scheduler)
{
    scheduler->running.root = scheduler->home.fiber;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = false;
}

static VALUE turn_at_home(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    VALUE value = hd_loop_turn(scheduler, NULL, scheduler->home.fiber);
    if (scheduler->running.root != scheduler->home.fiber) hd_send_back(scheduler, value);
    return Qnil;
}

static VALUE home_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    VALUE before = rb_errinfo();
    int state = 0;
    const hd_reactor *reactor = &scheduler->reactor;
    unsigned generation = reactor->generation;
    scheduler->home.stopped = false;
    note_turning(scheduler);
    while (reactor->waits.count > 0 && !scheduler->home.stopped) {
        if (!NIL_P(scheduler->home.fatal)) hd_raise_fatal(scheduler);
        rb_protect(turn_at_home, pointer, &state);
        while (RB_UNLIKELY(state) && hd_send_error_back(scheduler, before, &state)) continue;
        if (RB_UNLIKELY(state)) rb_jump_tag(state);
        hd_scheduler_check_fork(scheduler);
        note_turning(scheduler);
        if (reactor->generation != generation) break; /* the child of a fork has nothing to wait for */
    }
    if (!NIL_P(scheduler->home.fatal)) hd_raise_fatal(scheduler);
    return Qnil;
}

static VALUE leave_home(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->running.root = scheduler->home.fiber;
    scheduler->home.fiber = scheduler->running.task = Qnil;
    scheduler->home.waits = scheduler->running.scheduled = false;
    hd_watch_note_rest(scheduler);
    return Qnil;
}

static VALUE turn_here(VALUE pointer)
{
    return rb_ensure(home_loop, pointer, leave_home, pointer);
}

static void settle_in(hd_scheduler *scheduler)
{
    VALUE fiber = rb_fiber_current();
    scheduler->home.fiber = scheduler->home.last = fiber;
    scheduler->home.in_root_chain = hd_is_in_root_chain(fiber);
}

void hd_home_look_for_abandoned(hd_scheduler *scheduler)
{
    if (!scheduler->home.waits) return;
    VALUE scopes = rb_attr_get(scheduler->self, rb_intern("@scopes"));
    if (RHASH_SIZE(scopes) > 0) hd_loop_call(scheduler);
}

void hd_run_until_idle(hd_scheduler *scheduler)
{
    if (hd_scheduler_inside(scheduler)) rb_raise(hd_eError, "the scheduler is running already");
    settle_in(scheduler);
    scheduler->home.waits = true;
    hd_home_look_for_abandoned(scheduler);
    hd_unblocked(turn_here, (VALUE)scheduler); /* a handler that runs meanwhile may wait */
}

/* -- the block of a run ------------------------------------------------------------------------------------------ */

typedef struct {
    hd_scheduler *scheduler;
    VALUE (*function)(VALUE);
    VALUE argument;
} block_call;

static VALUE run_block(VALUE pointer)
{
    const block_call *call = (void *)pointer;
    return call->function(call->argument);
}

static VALUE leave_block(VALUE pointer)
{
    hd_scheduler *scheduler = ((block_call *)pointer)->scheduler;
    hd_scheduler_check_fork(scheduler);
    hd_pending_drop(scheduler);
    return leave_home((VALUE)scheduler);
}

static VALUE run_here(VALUE pointer)
{
    return rb_ensure(run_block, pointer, leave_block, pointer);
}

VALUE hd_run_at_home(hd_scheduler *scheduler, VALUE task, VALUE (*function)(VALUE), VALUE argument)
{
    block_call call = {scheduler, function, argument};
    settle_in(scheduler);
    scheduler->running.root = scheduler->home.fiber;
    scheduler->running.task = task;
    scheduler->running.scheduled = true;
    scheduler->fibers.count++;
    hd_watch_note_start(scheduler);
    return hd_unblocked(run_here, (VALUE)&call);
}

/* -- the end of a fiber ------------------------------------------------------------------------------------------ */

/* Will control come to a fiber that waits in Heddle, or turns the loop? */
static bool comes_to_heddle(hd_scheduler *scheduler)
{
    VALUE home = scheduler->home.fiber, where = hd_home_position(scheduler);
    if (NIL_P(home) || (where == home && scheduler->home.in_root_chain)) return true;
    return !NIL_P(where) && hd_is_in_root_chain(where);
}

static VALUE turn(VALUE scheduler)
{
    hd_loop_turn((hd_scheduler *)scheduler, NULL, rb_fiber_current());
    return Qnil;
}

void hd_end_at_home(hd_scheduler *scheduler)
{
    while (RB_UNLIKELY(!comes_to_heddle(scheduler))) {
        int state = 0;
        rb_protect(turn, (VALUE)scheduler, &state);
        if (!state) continue;
        if (!hd_is_exception(rb_errinfo())) rb_jump_tag(state);
        hd_raise_at_home(scheduler, rb_errinfo());
        rb_set_errinfo(Qnil);
    }
    /* Ruby may run a signal's handler as soon as control comes there. */
    if (scheduler->home.top)
        hd_note_running(scheduler, scheduler->home.top);
    else if (scheduler->home.waits)
        note_turning(scheduler);
}
