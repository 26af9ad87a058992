/* See loop.h. */
#include "loop.h"

#include "deadlock.h"
#include "fiber_return.h"
#include "home_waits.h"
#include "in_handler.h"
#include "lock_cycles.h"
#include "ruby_internals.h"
#include "stalls.h"
#include "strike.h"

/* Ruby 4.0 looks at the target's memory when control comes back (cont.c, fiber_switch), and by then the target may
 * have ended: this frame keeps it alive. A fiber that another one has resumed (an Enumerator's) may yield to that one,
 * and be resumed by a third: no frame keeps the first one alive then. What is passed to a fiber is kept until it is
 * passed something else, so it gets its root (as Enumerator#next passes the caller). */
static void switch_to(hd_scheduler *scheduler, VALUE fiber, VALUE root, bool sends_back)
{
    if (RB_UNLIKELY(sends_back))
        hd_transfer_and_send_back(scheduler, fiber, fiber != root, &root);
    else
        rb_fiber_transfer(fiber, fiber != root, &root);
    RB_GC_GUARD(fiber);
}

void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait)
{
    scheduler->running.root = (VALUE)wait->root;
    scheduler->running.task = (VALUE)wait->task;
    scheduler->running.scheduled = wait->scheduled;
}

void hd_raise_fatal(hd_scheduler *scheduler)
{
    VALUE fatal = scheduler->home.fatal;
    scheduler->home.fatal = Qnil;
    rb_exc_raise(fatal);
}

/* May control come here when a fiber has ended that a task had entered by transfer? It comes to fibers that this
 * scheduler has not started: home, one that home has resumed, one of the program's own. */
static bool sends_back(const hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    if (current == scheduler->home.fiber) return true;
    return own && (!own->scheduled || (VALUE)own->root == scheduler->home.fiber);
}

static void switch_to_waiting(hd_scheduler *scheduler, const hd_wait *wait, bool sends_back)
{
    hd_note_running(scheduler, wait); /* before the switch: a signal's handler may run at its end */
    switch_to(scheduler, (VALUE)hd_wait_fiber(wait), (VALUE)wait->root, sends_back);
}

/* -- what the thread was sent ---------------------------------------------------------------------------------- */

static VALUE check_ints(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)argv, (void)blockarg;
    rb_thread_check_ints();
    return Qnil;
}

/* Raises what the thread was sent, unless one of its fibers is in a handle_interrupt that holds it back: the masks are
 * the thread's. A fiber that is parked there must not make the thread immortal, so a kill looks past them; and so does
 * a Ctrl-C, which is meant for the program. */
static void check_interrupts(hd_scheduler *scheduler)
{
    scheduler->loop.check_interrupts = scheduler->loop.interrupted = false;
    rb_thread_check_ints();
    if (!RTEST(rb_funcall(rb_cThread, rb_intern("pending_interrupt?"), 0))) return;
    VALUE mask = rb_hash_new(), immediate = ID2SYM(rb_intern("immediate"));
    rb_hash_aset(mask, rb_cInteger, immediate);
    if (HD_CTRL_C_CAN_BE_HELD_BACK && scheduler->masks.blocks) rb_hash_aset(mask, rb_eInterrupt, immediate);
    rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &mask, check_ints, Qnil);
}

/* To home, which turns the loop and goes on with that, or to a fiber outside of the scheduler. */
static void switch_to_own(hd_scheduler *scheduler, VALUE fiber)
{
    scheduler->running.root = fiber;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = false;
    switch_to(scheduler, fiber, fiber, true);
}

/* Ruby runs no handler in a fiber while another handler runs there, but in every other one that control comes to next.
 * A task must not be held up so: if the handler at home waits, the next one runs in the maker. */
static void leave_signals_to_maker(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    VALUE maker = scheduler->home.maker;
    if (current == maker || hd_wait_of(scheduler, maker) || !hd_in_handler()) return;
    scheduler->running.root = maker;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = true;
    switch_to(scheduler, maker, maker, sends_back(scheduler, own, current));
}

/* Interrupts reach the program at home. Whatever the caller waits for may have come afterwards. */
static void look_for_interrupts(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    VALUE where = hd_home_position(scheduler);
    if (NIL_P(where) || current == where) {
        if (own) hd_note_running(scheduler, own);
        if (!NIL_P(scheduler->home.fatal) && !NIL_P(where)) hd_raise_fatal(scheduler);
        check_interrupts(scheduler);
        if (own && RB_UNLIKELY(!NIL_P(scheduler->home.maker))) leave_signals_to_maker(scheduler, own, current);
        return;
    }
    scheduler->loop.check_interrupts = true;
    if (scheduler->home.top) {
        switch_to_waiting(scheduler, scheduler->home.top, sends_back(scheduler, own, current));
        return;
    }
    switch_to_own(scheduler, scheduler->home.fiber);
}

/* -- the kernel ------------------------------------------------------------------------------------------------ */

typedef struct {
    hd_reactor *reactor;
    int64_t timeout_ns;
    bool ran;
} poll_call;

static void *poll_without_gvl(void *pointer)
{
    poll_call *call = pointer;
    call->ran = true;
    hd_reactor_poll_nogvl(call->reactor, call->timeout_ns);
    return NULL;
}

/* Runs in other threads and in the timer thread. */
static void unblock_poll(void *pointer)
{
    hd_scheduler *scheduler = pointer;
    scheduler->loop.interrupted = true;
    scheduler->reactor.ops->wake(scheduler->reactor.backend);
}

static void reap(hd_scheduler *scheduler)
{
    hd_reactor_reap(&scheduler->reactor);
    hd_inbox_drain(&scheduler->inbox);
}

void hd_loop_poll(hd_scheduler *scheduler)
{
    hd_reactor_poll_nogvl(&scheduler->reactor, 0);
    reap(scheduler);
}

/* Waits in the kernel until something is ready. */
static void sleep_in_kernel(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    poll_call call = {reactor, hd_reactor_timeout(reactor), false};
    if (call.timeout_ns == 0) {
        hd_loop_poll(scheduler);
        return;
    }
    if (RB_UNLIKELY(scheduler->locks.changed) && hd_lock_cycles_break(scheduler, &call.timeout_ns)) return;
    int64_t patience_until_ns = HD_NO_DEADLINE;
    if (call.timeout_ns == HD_NO_DEADLINE) {
        call.timeout_ns = hd_deadlock_patience(scheduler);
        if (call.timeout_ns != HD_NO_DEADLINE) patience_until_ns = hd_clock_now() + call.timeout_ns;
    }
    reactor->asleep = reactor->rests = true;
    hd_stalls_note_rest(scheduler);
    rb_nogvl(poll_without_gvl, &call, unblock_poll, scheduler, RB_NOGVL_INTR_FAIL | RB_NOGVL_UBF_ASYNC_SAFE);
    reactor->asleep = reactor->rests = false;
    reap(scheduler);
    /* rb_nogvl returns at once for any interrupt, also for a time slice that is over, which rb_thread_interrupted does
     * not see: another thread waits for the GVL. */
    if (!call.ran || scheduler->loop.interrupted || rb_thread_interrupted(scheduler->thread))
        look_for_interrupts(scheduler, own, current);
    else if (hd_reactor_has_ready(reactor))
        scheduler->loop.patience_ms = 0;
    else if (patience_until_ns != HD_NO_DEADLINE && hd_clock_now() >= patience_until_ns)
        hd_deadlock_check(scheduler); /* not sooner: a thread that was about to run has run meanwhile */
}

/* Outside of `run` a fiber that was entered by transfer hands control back when it waits, as every scheduler does: the
 * program goes on, and runs the scheduler later. (A fiber that has resumed this one can only wait for it.) */
static bool hands_back(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    VALUE outside = scheduler->home.outside;
    return NIL_P(scheduler->home.fiber) && !NIL_P(outside) && own && !own->scheduled && outside != current &&
           RTEST(rb_fiber_alive_p(outside)) && !hd_resumes_another(outside) && !hd_wait_of(scheduler, outside);
}

/* -- the turn -------------------------------------------------------------------------------------------------- */

void hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    /* 1. Interrupts of the thread go first. */
    if (RB_UNLIKELY(scheduler->loop.check_interrupts || rb_thread_interrupted(scheduler->thread))) {
        look_for_interrupts(scheduler, own, current);
        return;
    }
    /* 2. A look at the kernel, when it is time for one, or when nobody is ready and the loop is busy: more has likely
     * come meanwhile. */
    if (hd_reactor_poll_due(reactor)) hd_loop_poll(scheduler);
    hd_wait *next = hd_next_ready(reactor);
    if (!next && !reactor->slept) {
        hd_loop_poll(scheduler);
        next = hd_next_ready(reactor);
    }
    /* 3. The first ready fiber goes on; perhaps it is the caller itself. */
    if (next == own && own) return;
    if (next && RB_UNLIKELY(hd_home_wait_is_covered(scheduler, next))) return;
    if (next)
        switch_to_waiting(scheduler, next, sends_back(scheduler, own, current));
    /* 4. No fiber is ready: the caller waits in the kernel for all of them. (If no fiber waits any more, home ends its
     * loop.) */
    else if (!own && scheduler->home.waits && current != scheduler->home.fiber)
        switch_to_own(scheduler, scheduler->home.fiber);
    else if (RB_UNLIKELY(hands_back(scheduler, own, current)))
        switch_to_own(scheduler, scheduler->home.outside);
    else
        sleep_in_kernel(scheduler, own, current);
}
