/* See loop.h. */
#include "loop.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/core_ext.h"
#include "ruby/in_handler.h"
#include "ruby/ruby_internals.h"
#include "deadlock.h"
#include "home_waits.h"
#include "lock_cycles.h"
#include "virtual_clock.h"
#include "warm_stacks.h"
#include "watch.h"

/* Switches to a fiber. Ruby 4.0 looks at the target's memory when control comes back (cont.c, fiber_switch), and the
 * target may have ended by then, so this frame keeps it alive. A fiber that another one has resumed (an
 * Enumerator's) may yield to that one, and be resumed by a third: then no frame keeps the first one alive. Ruby
 * keeps the value that is passed to a fiber until it is passed another one. So this function passes the root (as
 * Enumerator#next passes the caller). */
static VALUE switch_to(VALUE fiber, VALUE root)
{
    VALUE value = rb_fiber_transfer(fiber, fiber != root, &root);
    RB_GC_GUARD(fiber);
    return value;
}

void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait)
{
    scheduler->running.root = (VALUE)wait->root;
    scheduler->running.task = (VALUE)wait->task;
    scheduler->running.scheduled = wait->scheduled;
}

VALUE hd_take_fatal(hd_scheduler *scheduler)
{
    VALUE fatal = scheduler->home.fatal;
    scheduler->home.fatal = Qnil;
    return fatal;
}

void hd_raise_fatal(hd_scheduler *scheduler)
{
    rb_exc_raise(hd_take_fatal(scheduler));
}

static VALUE switch_to_waiting(hd_scheduler *scheduler, const hd_wait *wait)
{
    hd_note_running(scheduler, wait); /* before the switch, because a signal's handler may run at its end */
    return switch_to((VALUE)hd_wait_fiber(wait), (VALUE)wait->root);
}

/* -- what the thread was sent ---------------------------------------------------------------------------------- */

static VALUE check_ints(VALUE unused)
{
    (void)unused;
    rb_thread_check_ints();
    return Qnil;
}

static VALUE catch_interrupt(RB_BLOCK_CALL_FUNC_ARGLIST(unused, caught))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_catch(check_ints, Qnil, (hd_caught *)caught);
    return Qnil;
}

typedef struct {
    VALUE mask;
    hd_caught caught;
} masked_look;

static VALUE look_under_mask(VALUE pointer)
{
    masked_look *look = (void *)pointer;
    ID own = HD_KEPT("handle_interrupt"); /* not there if the patch is switched off */
    if (!rb_respond_to(rb_cThread, own)) own = rb_intern("handle_interrupt");
    return rb_block_call(rb_cThread, own, 1, &look->mask, catch_interrupt, (VALUE)&look->caught);
}

/* Looks for interrupts under this mask. Nothing may leave the block of Ruby's handle_interrupt: Ruby runs signal
 * handlers at its end, and a handler that rescues an error of its own clears what is being raised, which crashes. An
 * exception of such a handler is raised when the loop turns next. */
static void check_ints_under(hd_scheduler *scheduler, VALUE mask)
{
    masked_look look = {mask, {.exception = Qnil}};
    hd_caught handler;
    hd_catch(look_under_mask, (VALUE)&look, &handler);
    if (!look.caught.state) {
        hd_go_on(&handler);
        return;
    }
    if (!NIL_P(handler.exception)) hd_raise_at_home(scheduler, handler.exception);
    if (!NIL_P(look.caught.exception) || !NIL_P(rb_errinfo())) hd_go_on(&look.caught);
}

static bool has_pending_interrupt(void)
{
    return RTEST(rb_funcall(rb_cThread, rb_intern("pending_interrupt?"), 0));
}

/* Raises what the thread was sent, unless one of its fibers is in a handle_interrupt block that holds it back:
 * Ruby's masks are the thread's. A fiber that is parked in such a block must not make the thread immortal, so a kill
 * is raised in spite of masks. So is a Ctrl-C, which is meant for the program. */
static void check_interrupts(hd_scheduler *scheduler)
{
    scheduler->loop.check_interrupts = scheduler->loop.interrupted = false;
    if (scheduler->loop.called) {
        scheduler->loop.called = false;
        rb_funcall(scheduler->self, rb_intern("start_left"), 1, HD_BOOL(scheduler->home.waits));
    }
    rb_thread_check_ints();
    if (!has_pending_interrupt()) return;
    VALUE mask = rb_hash_new(), immediate = ID2SYM(rb_intern("immediate"));
    rb_hash_aset(mask, rb_cInteger, immediate);
    if (HD_CTRL_C_CAN_BE_HELD_BACK && scheduler->masks.blocks) rb_hash_aset(mask, rb_eInterrupt, immediate);
    check_ints_under(scheduler, mask);
}

/* Switches to home, which turns the loop and goes on with the interrupt, or to a fiber outside of the scheduler. */
static VALUE switch_to_own(hd_scheduler *scheduler, VALUE fiber)
{
    scheduler->running.root = fiber;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = false;
    return switch_to(fiber, fiber);
}

/* Does a signal's handler wait in this fiber, and none in the maker? Ruby runs no handler in a fiber in which another
 * handler runs, but it runs the next one in any other fiber that gets control. A task must not be held up by that: the
 * signal is left to the maker. */
static bool leaves_signals(hd_scheduler *scheduler, VALUE current)
{
    VALUE maker = scheduler->home.maker;
    return !NIL_P(maker) && current != maker && !hd_wait_of_chain(scheduler, maker) && hd_in_handler() &&
           RTEST(rb_fiber_alive_p(maker));
}

static VALUE switch_to_maker(hd_scheduler *scheduler)
{
    VALUE maker = scheduler->home.maker;
    scheduler->running.root = maker;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = true;
    return switch_to(maker, maker);
}

/* Switches to home, or to the fiber that home has resumed and that waits now. */
static VALUE switch_home(hd_scheduler *scheduler)
{
    if (scheduler->home.top) return switch_to_waiting(scheduler, scheduler->home.top);
    return switch_to_own(scheduler, scheduler->home.fiber);
}

/* Looks for interrupts of the thread, in the fiber where they reach the program. If that is another fiber, switches to
 * it. The caller looks again at its own wait afterwards, because the event for it may have come meanwhile. */
static VALUE look_for_interrupts(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    VALUE where = hd_home_position(scheduler);
    if (NIL_P(where) || current == where) {
        if (own) hd_note_running(scheduler, own);
        if (!NIL_P(scheduler->home.fatal) && !NIL_P(where)) hd_raise_fatal(scheduler);
        check_interrupts(scheduler);
        return own && RB_UNLIKELY(leaves_signals(scheduler, current)) ? switch_to_maker(scheduler) : Qnil;
    }
    scheduler->loop.check_interrupts = true;
    return switch_home(scheduler);
}

bool hd_thread_was_sent_something(hd_scheduler *scheduler)
{
    return rb_thread_interrupted(scheduler->thread) || has_pending_interrupt();
}

/* Lets home go on, which has stopped because its time slice was over. Ruby raises the interrupt there. */
static VALUE give_to_home(hd_scheduler *scheduler, const hd_wait *own)
{
    hd_wait *home = scheduler->home.top;
    hd_wait_go_on(home);
    return home == own ? Qnil : switch_to_waiting(scheduler, home);
}

void hd_loop_call(hd_scheduler *scheduler)
{
    scheduler->loop.called = scheduler->loop.check_interrupts = scheduler->loop.interrupted = true;
    hd_reactor_wake_if_asleep(&scheduler->reactor);
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

/* Ends the poll. Runs in other threads, and in Ruby's timer thread. */
static void unblock_poll(void *pointer)
{
    hd_scheduler *scheduler = pointer;
    scheduler->loop.interrupted = true;
    scheduler->reactor.ops->wake(scheduler->reactor.backend);
}

/* When the loop has to look at the stacks. Never with a virtual clock, because the times here are those of the
 * machine. */
static int64_t stacks_due(const hd_scheduler *scheduler)
{
    return scheduler->virtual_clock.on ? HD_NO_DEADLINE : hd_warm_stacks_due(scheduler->reactor.now_ns);
}

static void reap(hd_scheduler *scheduler)
{
    hd_reactor_reap(&scheduler->reactor);
    hd_inbox_drain(&scheduler->inbox);
    int64_t now_ns = scheduler->reactor.now_ns;
    if (RB_UNLIKELY(stacks_due(scheduler) <= now_ns)) hd_warm_stacks_look(now_ns);
}

void hd_loop_poll(hd_scheduler *scheduler)
{
    hd_reactor_poll_nogvl(&scheduler->reactor, 0);
    reap(scheduler);
}

/* Must the loop ask a method in Ruby before it sleeps? A signal's handler may run in such a method, and it may raise an
 * exception, or wait. So the loop asks at home, where all handlers run. */
static bool must_ask(const hd_scheduler *scheduler, int64_t *timeout_ns)
{
    return (scheduler->locks.changed && hd_lock_cycles_due(scheduler, timeout_ns)) || scheduler->virtual_clock.on ||
           scheduler->loop.patience_is_over;
}

/* Asks. True: the loop must turn once more, because fibers have become ready, or a handler may have started some. */
static bool ask(hd_scheduler *scheduler, int64_t *timeout_ns)
{
    if (scheduler->loop.patience_is_over) {
        scheduler->loop.patience_is_over = false;
        hd_deadlock_check(scheduler);
        return true;
    }
    if (scheduler->locks.changed && hd_lock_cycles_due(scheduler, timeout_ns) && hd_lock_cycles_break(scheduler))
        return true;
    return scheduler->virtual_clock.on && hd_virtual_clock_goes_on(scheduler, timeout_ns);
}

/* Waits in the kernel until something is ready. It is not inlined because hd_loop_turn is on the stack of every fiber
 * that waits: 100 bytes more there can take a page more for each of them. */
NOINLINE(static VALUE sleep_in_kernel(hd_scheduler *scheduler, const hd_wait *own, VALUE current));
static VALUE sleep_in_kernel(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    poll_call call = {reactor, hd_reactor_timeout(reactor), false};
    if (call.timeout_ns == 0) {
        hd_loop_poll(scheduler);
        return Qnil;
    }
    if (RB_UNLIKELY(must_ask(scheduler, &call.timeout_ns))) {
        VALUE where = hd_home_position(scheduler);
        if (!NIL_P(where) && where != current) return switch_home(scheduler);
        if (ask(scheduler, &call.timeout_ns)) return Qnil;
    }
    else if (own && !scheduler->home.waits && RB_UNLIKELY(leaves_signals(scheduler, current))) {
        /* Where a handler waits, rb_nogvl does not see a signal that has just come, and would sleep. Not if
         * home turns the loop itself, because the maker would give control back to it at once. */
        return switch_to_maker(scheduler);
    }
    int64_t patience_until_ns = HD_NO_DEADLINE;
    if (call.timeout_ns == HD_NO_DEADLINE) {
        call.timeout_ns = hd_deadlock_patience(scheduler);
        if (call.timeout_ns != HD_NO_DEADLINE) patience_until_ns = hd_clock_machine() + call.timeout_ns;
    }
    int64_t stacks_due_ns = stacks_due(scheduler);
    if (RB_UNLIKELY(stacks_due_ns != HD_NO_DEADLINE)) {
        int64_t left_ns = stacks_due_ns - reactor->now_ns;
        call.timeout_ns = left_ns < 0 ? 0 : hd_earlier(call.timeout_ns, left_ns);
    }
    reactor->asleep = reactor->rests = true;
    hd_watch_note_rest(scheduler);
    rb_nogvl(poll_without_gvl, &call, unblock_poll, scheduler, RB_NOGVL_INTR_FAIL | RB_NOGVL_UBF_ASYNC_SAFE);
    reactor->asleep = reactor->rests = false;
    if (RB_UNLIKELY(scheduler->virtual_clock.on)) hd_virtual_clock_slept(scheduler);
    reap(scheduler);
    /* rb_nogvl returns at once for any interrupt. One kind comes from Ruby's timer, when another thread waits for the
     * GVL. rb_thread_interrupted does not report that one. */
    if (!call.ran || scheduler->loop.interrupted || rb_thread_interrupted(scheduler->thread))
        return look_for_interrupts(scheduler, own, current);
    if (hd_reactor_has_ready(reactor))
        scheduler->loop.patience_ms = scheduler->loop.patience_is_over = 0;
    else if (patience_until_ns != HD_NO_DEADLINE && hd_clock_machine() >= patience_until_ns)
        scheduler->loop.patience_is_over = true; /* not sooner: a thread that was about to run has run meanwhile */
    return Qnil;
}

/* Must this fiber hand control back when it waits? Outside of `run` a fiber that was entered by transfer does so, as
 * with every scheduler: the program goes on, and runs the scheduler later. A fiber that was resumed cannot, because
 * its resumer can only wait for it. */
static bool hands_back(hd_scheduler *scheduler, const hd_wait *own, VALUE current)
{
    VALUE outside = scheduler->home.outside;
    return NIL_P(scheduler->home.fiber) && !NIL_P(outside) && own && !own->scheduled && outside != current &&
           RTEST(rb_fiber_alive_p(outside)) && !hd_resumes_another(outside) && !hd_wait_of(scheduler, outside);
}

/* -- the turn -------------------------------------------------------------------------------------------------- */

VALUE hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    /* 1. Interrupts of the thread go first. */
    if (RB_UNLIKELY(scheduler->loop.check_interrupts || rb_thread_interrupted(scheduler->thread))) {
        if (!hd_home_computes(scheduler)) return look_for_interrupts(scheduler, own, current);
        if (hd_thread_was_sent_something(scheduler)) return give_to_home(scheduler, own);
    }
    /* 2. Looks at the kernel when it is time, or when no fiber is ready and the loop is busy: more events have
     * likely come. The answers to writes come at once, so the GVL is kept for them. */
    if (hd_reactor_poll_due(reactor)) hd_loop_poll(scheduler);
    hd_wait *next = hd_next_ready(reactor);
    if (!next && (!reactor->slept || reactor->writes)) {
        hd_loop_poll(scheduler);
        next = hd_next_ready(reactor);
    }
    /* 3. The first ready fiber goes on. It may be the caller itself. */
    if (next == own && own) return Qnil;
    if (next && RB_UNLIKELY(hd_home_wait_is_covered(scheduler, next))) return Qnil;
    if (next) return switch_to_waiting(scheduler, next);
    /* 4. No fiber is ready: the caller waits in the kernel for all of them. If no fiber waits, home ends its loop. */
    if (!own && scheduler->home.waits && current != scheduler->home.fiber)
        return switch_to_own(scheduler, scheduler->home.fiber);
    if (RB_UNLIKELY(hands_back(scheduler, own, current))) return switch_to_own(scheduler, scheduler->home.outside);
    return sleep_in_kernel(scheduler, own, current);
}
