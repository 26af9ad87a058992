/* The hook timeout_after: Timeout.timeout inside a fiber. The deadline is a record on the C stack of the fiber
 * that set it; no object is made until it fires. */
#include "timeout.h"

#include <string.h>

#include "interrupt_mask.h"
#include "park.h"
#include "watch.h"

/* What hd_timeouts_strike leaves to the loop, and how often it looks at what it cannot interrupt. */
enum { GRACE_NS = 2 * HD_NS_PER_MS, LOOK_AGAIN_NS = 10 * HD_NS_PER_MS };

typedef struct {
    hd_timer timer;
    hd_node expired_node; /* in scheduler->expired once due and not yet raised */
    hd_scheduler *scheduler;
    VALUE fiber, root; /* on whose stack this is; of the chain of fibers that is to raise */
    VALUE duration, exception, message; /* exception nil: none was named */
    VALUE raised;        /* the exception, once it is made */
    VALUE sent;          /* what Thread#raise was given by hd_timeouts_strike, or nil */
    bool suspected;      /* it was seen to compute, after so many parks of the scheduler */
    unsigned parks;
    unsigned generation; /* the reactor's: a fork in between voids the record */
} timeout;

static VALUE cExitException, cTimeoutError;
static ID id_cause; /* where Ruby keeps an exception's cause */

/* An exception or a class. Without a class it is one that `rescue => e` inside of the block does not swallow; the
 * frame of the timeout makes a Timeout::Error of it. (As Timeout::Error.handle_timeout does, which makes the exception
 * beforehand.) */
static VALUE class_of(const timeout *timeout)
{
    return NIL_P(timeout->exception) ? cExitException : timeout->exception;
}

static hd_mask mask_of(const timeout *timeout, VALUE fiber)
{
    return hd_interrupt_mask(timeout->scheduler, (hd_struck){timeout->root, fiber}, class_of(timeout));
}

/* Runs while the loop reaps: only marks. The chain of fibers raises when it wakes, or, when it is not parked (its wake
 * is on the way already), when it parks next. Thread.handle_interrupt may put that off. */
static void timeout_fired(hd_timer *timer)
{
    timeout *due = HD_CONTAINER_OF(timer, timeout, timer);
    hd_list_push_back(&due->scheduler->expired, &due->expired_node);
    hd_wait *wait = hd_wait_of_chain(due->scheduler, due->root);
    if (wait && mask_of(due, hd_wait_fiber(wait)) != HD_MASK_NEVER) hd_wait_settle(wait, HD_WOKEN_BY_EXCEPTION);
}

/* Sets what `raise` would take from a rescue that the fiber is in. */
static VALUE caused_by(VALUE exception, VALUE cause)
{
    if (!OBJ_FROZEN(exception)) rb_ivar_set(exception, id_cause, cause);
    return exception;
}

/* (Without a cause, as what Thread#raise brings: eval.c, rb_ec_setup_exception.) */
static VALUE make_exception(const timeout *timeout)
{
    VALUE arguments[] = {class_of(timeout), timeout->message};
    return caused_by(rb_make_exception(NIL_P(timeout->message) ? 1 : 2, arguments), Qnil);
}

static void raise_expired(hd_scheduler *scheduler, hd_mask strictest)
{
    VALUE root = hd_root(scheduler), fiber = rb_fiber_current();
    for (hd_node *node = hd_list_first(&scheduler->expired); node; node = hd_list_after(&scheduler->expired, node)) {
        timeout *due = HD_CONTAINER_OF(node, timeout, expired_node);
        if (due->root != root || mask_of(due, fiber) > strictest) continue;
        hd_node_remove(node);
        if (NIL_P(due->sent)) {
            due->raised = make_exception(due);
            rb_exc_raise(due->raised);
        }
        rb_thread_check_ints(); /* sent to the thread, and this is the place to raise it */
        return;
    }
}

void hd_timeouts_mark(const hd_scheduler *scheduler)
{
    const hd_timers *timers = &scheduler->reactor.timers;
    for (size_t i = 0; i < timers->count; i++)
        if (timers->heap[i]->fire == timeout_fired)
            rb_gc_mark(HD_CONTAINER_OF(timers->heap[i], timeout, timer)->fiber);
    for (hd_node *node = hd_list_first(&scheduler->expired); node; node = hd_list_after(&scheduler->expired, node))
        rb_gc_mark(HD_CONTAINER_OF(node, timeout, expired_node)->fiber);
}

VALUE hd_timeouts_set(const hd_scheduler *scheduler)
{
    const hd_timers *timers = &scheduler->reactor.timers;
    VALUE set = rb_ary_new();
    for (size_t i = 0; i < timers->count; i++)
        if (timers->heap[i]->fire == timeout_fired)
            rb_ary_push(set, rb_assoc_new(HD_CONTAINER_OF(timers->heap[i], timeout, timer)->root,
                                          LL2NUM(timers->heap[i]->deadline_ns)));
    return set;
}

void hd_timeouts_raise_expired(hd_scheduler *scheduler)
{
    raise_expired(scheduler, HD_MASK_ON_BLOCKING);
}

void hd_timeouts_raise_overdue(hd_scheduler *scheduler)
{
    if (RB_LIKELY(hd_list_empty(&scheduler->expired)) || hd_scheduler_foreign(scheduler)) return;
    raise_expired(scheduler, HD_MASK_ON_BLOCKING);
}

void hd_timeouts_raise_unmasked(hd_scheduler *scheduler)
{
    raise_expired(scheduler, HD_MASK_IMMEDIATE);
}

static VALUE call_block(VALUE pointer)
{
    return rb_yield(((timeout *)pointer)->duration);
}

static VALUE check_interrupts(VALUE unused)
{
    (void)unused;
    rb_thread_check_ints();
    return Qnil;
}

/* An exception that was sent to the thread and came too late must not strike whatever runs next. */
static void take_back(const timeout *timeout)
{
    int state = 0;
    rb_protect(check_interrupts, Qnil, &state);
    if (!state) return;
    if (rb_errinfo() != timeout->sent) rb_jump_tag(state);
    rb_set_errinfo(Qnil);
}

static VALUE remove_timeout(VALUE pointer)
{
    timeout *timeout = (void *)pointer;
    hd_scheduler_check_fork(timeout->scheduler);
    if (timeout->generation != timeout->scheduler->reactor.generation) return Qnil;
    if (!NIL_P(timeout->raised)) hd_withdraw(timeout->scheduler, timeout->raised); /* nobody waits for it out there */
    if (!NIL_P(timeout->sent)) take_back(timeout);
    if (hd_timer_set(&timeout->timer)) hd_timers_remove(&timeout->scheduler->reactor.timers, &timeout->timer);
    if (!hd_node_linked(&timeout->expired_node)) return Qnil;
    hd_node_remove(&timeout->expired_node);
    if (!NIL_P(timeout->sent)) return Qnil;
    VALUE fiber = timeout->fiber;
    if (mask_of(timeout, fiber) == HD_MASK_IMMEDIATE) return Qnil;
    VALUE exception = make_exception(timeout);
    hd_interrupt_mask_hold(timeout->scheduler, (hd_struck){timeout->root, fiber}, exception);
    return Qnil;
}

static VALUE call_block_ensured(VALUE pointer)
{
    return rb_ensure(call_block, pointer, remove_timeout, pointer);
}

static VALUE timeout_error(VALUE pointer, VALUE exception)
{
    timeout *timeout = (void *)pointer;
    if (exception != timeout->raised) rb_exc_raise(exception);
    rb_exc_raise(caused_by(rb_class_new_instance(1, &timeout->message, cTimeoutError), exception));
}

/* Calls the block; raises the exception in it when the time is over.
 *
 * @param duration [Numeric] seconds
 * @param exception [Class, Exception, nil] nil: Timeout::Error, which a rescue inside of the block does not see
 * @param message [String, nil]
 * @yield [Numeric] the duration
 * @return [Object] what the block returns */
static VALUE hook_timeout_after(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 3);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int64_t deadline_ns = hd_deadline_of_limit(argv[0]);
    timeout timeout = {
        .timer.fire = timeout_fired,
        .scheduler = scheduler,
        .generation = scheduler->reactor.generation,
        .fiber = rb_fiber_current(),
        .root = hd_root(scheduler),
        .duration = argv[0],
        .exception = argc > 1 ? argv[1] : Qnil,
        .message = argc > 2 ? argv[2] : rb_str_new_cstr("execution expired"),
        .raised = Qnil,
        .sent = Qnil,
    };
    if (deadline_ns != HD_NO_DEADLINE) {
        if (hd_timers_add(&scheduler->reactor.timers, &timeout.timer, deadline_ns) < 0) rb_memerror();
        hd_watch_deadline(scheduler, deadline_ns);
    }
    if (!NIL_P(timeout.exception)) return call_block_ensured((VALUE)&timeout);
    return rb_rescue2(call_block_ensured, (VALUE)&timeout, timeout_error, (VALUE)&timeout, cExitException, (VALUE)0);
}

/* Is this fiber, or one that it has resumed, what the thread runs? Only its description tells another thread so. One
 * that is abandoned is "suspended", or "terminated". */
static bool runs(VALUE fiber)
{
    VALUE text = rb_inspect(fiber);
    const char *said = StringValueCStr(text);
    return strstr(said, "(resumed)>") || strstr(said, "(suspended by resuming)>");
}

/* A thread that is in a system call "sleeps". */
static bool in_system_call(VALUE thread)
{
    VALUE status = rb_funcall(thread, rb_intern("status"), 0);
    return !RB_TYPE_P(status, T_STRING) || strcmp(StringValueCStr(status), "run") != 0;
}

/* The loop does not come to it: the next hook that the fiber calls raises it, if it calls any. */
static void expire(timeout *due)
{
    if (!hd_timer_set(&due->timer)) return;
    hd_timers_remove(&due->scheduler->reactor.timers, &due->timer);
    hd_list_push_back(&due->scheduler->expired, &due->expired_node);
}

/* Overdue, and its fibers neither wait nor are about to go on: they compute. Seen twice without a wait in between: what
 * has just come back from a wait with something in its hands (bytes, a connection) is not struck. Nor is a system call,
 * for the same reason. */
static bool computes(timeout *due)
{
    hd_scheduler *scheduler = due->scheduler;
    if (!NIL_P(due->sent) || hd_wait_of_chain(scheduler, due->root) ||
        hd_interrupt_masked_somewhere(scheduler, class_of(due)) || !runs(due->root))
        return false;
    if (in_system_call(scheduler->thread)) {
        expire(due);
        return false;
    }
    bool suspected = due->suspected && due->parks == scheduler->parks;
    due->suspected = true;
    due->parks = scheduler->parks;
    return suspected;
}

/* The timeout that is overdue for longest in fibers that compute, or NULL; and when to look again. */
static timeout *overdue(hd_scheduler *scheduler, int64_t now_ns, int64_t *look_ns)
{
    timeout *found = NULL;
    for (hd_node *node = hd_list_first(&scheduler->expired); node; node = hd_list_after(&scheduler->expired, node)) {
        timeout *due = HD_CONTAINER_OF(node, timeout, expired_node);
        if (NIL_P(due->sent)) *look_ns = hd_earlier(*look_ns, now_ns + LOOK_AGAIN_NS);
        if ((!found || due->timer.deadline_ns < found->timer.deadline_ns) && computes(due)) found = due;
    }
    const hd_timers *timers = &scheduler->reactor.timers;
    for (size_t i = 0; i < timers->count; i++) { /* (One that is taken out hides another: until the next look.) */
        hd_timer *timer = timers->heap[i];
        if (timer->fire != timeout_fired) continue;
        bool later = timer->deadline_ns > now_ns - GRACE_NS;
        *look_ns = hd_earlier(*look_ns, later ? timer->deadline_ns + GRACE_NS : now_ns + LOOK_AGAIN_NS);
        if (later || (found && found->timer.deadline_ns <= timer->deadline_ns)) continue;
        timeout *due = HD_CONTAINER_OF(timer, timeout, timer);
        if (computes(due)) found = due;
    }
    return found;
}

int64_t hd_timeouts_strike(hd_scheduler *scheduler, int64_t now_ns)
{
    int64_t look_ns = HD_NO_DEADLINE;
    timeout *due = overdue(scheduler, now_ns, &look_ns);
    if (!due) return look_ns;
    uint64_t sequence = due->timer.sequence;
    VALUE exception = make_exception(due); /* may call Ruby code: the record may be gone with its stack then */
    if (overdue(scheduler, now_ns, &look_ns) != due || due->timer.sequence != sequence) return now_ns;
    if (hd_timer_set(&due->timer)) hd_timers_remove(&scheduler->reactor.timers, &due->timer);
    if (!hd_node_linked(&due->expired_node)) hd_list_push_back(&scheduler->expired, &due->expired_node);
    due->sent = due->raised = exception;
    rb_funcall(scheduler->thread, rb_intern("raise"), 1, exception);
    return look_ns;
}

void hd_init_hooks_timeout(void)
{
    rb_require("timeout");
    id_cause = rb_intern("cause");
    cExitException = rb_path2class("Timeout::ExitException");
    cTimeoutError = rb_path2class("Timeout::Error");
    rb_gc_register_mark_object(cExitException);
    rb_gc_register_mark_object(cTimeoutError);
    rb_define_method(hd_cScheduler, "timeout_after", hook_timeout_after, -1);
}
