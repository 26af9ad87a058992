/* See loop.h. */
#include "loop.h"

#include "deadlock.h"
#include "fiber_return.h"
#include "stalls.h"

/* Ruby 4.0 looks at the target's memory when control comes back (cont.c, fiber_switch), and by then the target may
 * have ended: this frame keeps it alive. A fiber that another one has resumed (an Enumerator's) may yield to that one,
 * and be resumed by a third: no frame keeps the first one alive then. What is passed to a fiber is kept until it is
 * passed something else, so it gets its root (as Enumerator#next passes the caller). */
static void switch_to(hd_scheduler *scheduler, VALUE fiber, VALUE root, bool sends_back)
{
    scheduler->running.root = root;
    scheduler->running.task = Qnil; /* what has waited there says which (hd_note_running); the loop has none */
    if (RB_UNLIKELY(sends_back))
        hd_transfer_and_send_back(scheduler, fiber, fiber != root, &root);
    else
        rb_fiber_transfer(fiber, fiber != root, &root);
    RB_GC_GUARD(fiber);
}

void hd_switch_to(hd_scheduler *scheduler, VALUE fiber, VALUE root)
{
    switch_to(scheduler, fiber, root, rb_fiber_current() == scheduler->home.fiber);
}

void hd_note_running(hd_scheduler *scheduler, const hd_wait *wait)
{
    scheduler->running.root = (VALUE)wait->root;
    scheduler->running.task = (VALUE)wait->task;
    scheduler->running.scheduled = wait->scheduled;
}

void hd_raise_fatal(hd_scheduler *scheduler)
{
    VALUE fatal = scheduler->home.raised = scheduler->home.fatal;
    scheduler->home.fatal = Qnil;
    rb_exc_raise(fatal);
}

/* The fiber that sleeps in the kernel for all, if home waits for that. */
static VALUE loop_of(const hd_scheduler *scheduler)
{
    return NIL_P(scheduler->loop.fiber) ? scheduler->home.fiber : scheduler->loop.fiber;
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

/* Interrupts surface where the loop turns. Whatever the caller waits for may be there afterwards. */
static void look_for_interrupts(hd_scheduler *scheduler, VALUE current)
{
    bool fatal = !NIL_P(scheduler->home.fatal);
    if (fatal && current == scheduler->home.fiber) hd_raise_fatal(scheduler);
    VALUE where = fatal ? scheduler->home.fiber : loop_of(scheduler);
    if (!scheduler->home.waits || current == where) {
        check_interrupts(scheduler);
        return;
    }
    scheduler->loop.check_interrupts = true;
    hd_switch_to(scheduler, where, where);
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
static void sleep_in_kernel(hd_scheduler *scheduler, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    poll_call call = {reactor, hd_reactor_timeout(reactor), false};
    if (call.timeout_ns == 0) {
        hd_loop_poll(scheduler);
        return;
    }
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
        look_for_interrupts(scheduler, current);
    else if (hd_reactor_has_ready(reactor))
        scheduler->loop.patience_ms = 0;
    else if (patience_until_ns != HD_NO_DEADLINE && hd_clock_now() >= patience_until_ns)
        hd_deadlock_check(scheduler); /* not sooner: a thread that was about to run has run meanwhile */
}

/* -- the turn -------------------------------------------------------------------------------------------------- */

void hd_loop_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    /* 1. What the thread was sent goes first. */
    if (RB_UNLIKELY(scheduler->loop.check_interrupts || rb_thread_interrupted(scheduler->thread))) {
        if (own) hd_note_running(scheduler, own);
        look_for_interrupts(scheduler, current);
        return;
    }
    /* 2. A look at the kernel, when it is time for one, or when nobody is ready and the loop is busy: more has likely
     * come meanwhile. (Home does not look: a signal would be handled in the fiber that it came in.) */
    VALUE loop = loop_of(scheduler);
    bool polls = current != scheduler->home.fiber || loop == current;
    bool due = hd_reactor_poll_due(reactor);
    if (own) hd_wait_note_turn(own);
    if (due && polls) hd_loop_poll(scheduler);
    bool sends_back = (own && !own->scheduled) || current == scheduler->home.fiber;
    hd_wait *next = due && !polls ? NULL : hd_next_ready(reactor);
    if (!next && polls && !reactor->slept) {
        hd_loop_poll(scheduler);
        next = hd_next_ready(reactor);
    }
    /* 3. Who is ready goes on; the caller itself, maybe. */
    if (next == own && own) return;
    if (next)
        switch_to(scheduler, (VALUE)hd_wait_fiber(next), (VALUE)next->root, sends_back);
    /* 4. Nobody is: the fiber of the loop waits in the kernel. */
    else if (!scheduler->home.waits || loop == current)
        sleep_in_kernel(scheduler, current);
    else
        switch_to(scheduler, loop, loop, sends_back);
}
