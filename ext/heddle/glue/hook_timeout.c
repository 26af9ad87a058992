/* The hook timeout_after: Timeout.timeout inside a fiber. The deadline is a record on the C stack of the fiber
 * that set it; no object is made until it fires. */
#include "timeout.h"

#include <string.h>

#include "interrupt_mask.h"
#include "park.h"
#include "thread_calls.h"
#include "watch.h"

/* What hd_timeouts_strike leaves to the loop, and how often it looks at what it cannot interrupt. */
enum { GRACE_NS = 2 * HD_NS_PER_MS, LOOK_AGAIN_NS = 10 * HD_NS_PER_MS };

typedef struct timeout {
    hd_timer timer;
    hd_map_node root_node; /* in scheduler->timeouts until it is raised; its key is the root */
    uint64_t expired;      /* counts those that became due; 0: it is not due yet */
    hd_scheduler *scheduler;
    VALUE fiber, root; /* on whose stack this is; of the chain of fibers that is to raise */
    VALUE duration, exception, message; /* exception nil: none was named */
    VALUE raised;        /* the exception, once it is made */
    VALUE sent;          /* what Thread#raise was given by hd_timeouts_strike, or nil */
    bool blocking;       /* of a blocking fiber: calls of the system are struck, too, as by Ruby's own Timeout */
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

/* The next timeout of this root, after one or NULL; or NULL. */
static timeout *next_of(const hd_scheduler *scheduler, VALUE root, const timeout *after)
{
    hd_map_node *node = after ? hd_map_find_next(&scheduler->timeouts, &after->root_node)
                              : hd_map_find(&scheduler->timeouts, (hd_word)root);
    return node ? HD_CONTAINER_OF(node, timeout, root_node) : NULL;
}

static void expire(timeout *due)
{
    if (hd_timer_set(&due->timer)) hd_timers_remove(&due->scheduler->reactor.limits, &due->timer);
    if (due->expired) return;
    due->expired = ++due->scheduler->expiries;
    due->scheduler->expired++;
}

/* It is to strike nobody any more. Was it due? */
static bool forget(timeout *timeout)
{
    hd_scheduler *scheduler = timeout->scheduler;
    if (hd_timer_set(&timeout->timer)) hd_timers_remove(&scheduler->reactor.limits, &timeout->timer);
    if (!hd_map_node_linked(&timeout->root_node)) return false;
    hd_map_remove(&scheduler->timeouts, &timeout->root_node);
    if (timeout->expired) scheduler->expired--;
    return timeout->expired;
}

/* Runs while the loop reaps: only marks. The chain of fibers raises when it wakes, or, when it is not parked (its wake
 * is on the way already), when it parks next. Thread.handle_interrupt may put that off. */
static void timeout_fired(hd_timer *timer)
{
    timeout *due = HD_CONTAINER_OF(timer, timeout, timer);
    expire(due);
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

/* The first to have become due of those that may strike now. */
static timeout *first_expired(const hd_scheduler *scheduler, VALUE root, VALUE fiber, hd_mask strictest)
{
    timeout *first = NULL;
    for (timeout *due = next_of(scheduler, root, NULL); due; due = next_of(scheduler, root, due))
        if (due->expired && (!first || due->expired < first->expired) && mask_of(due, fiber) <= strictest) first = due;
    return first;
}

static void raise_expired(hd_scheduler *scheduler, hd_mask strictest)
{
    timeout *due = first_expired(scheduler, hd_root(scheduler), rb_fiber_current(), strictest);
    if (!due) return;
    forget(due);
    if (NIL_P(due->sent)) {
        due->raised = make_exception(due);
        rb_exc_raise(due->raised);
    }
    rb_thread_check_ints(); /* sent to the thread, and this is the place to raise it */
}

void hd_timeouts_end(hd_scheduler *scheduler, VALUE root)
{
    for (timeout *left; (left = next_of(scheduler, root, NULL));) forget(left);
}

static void mark(hd_map_node *node, void *unused)
{
    (void)unused;
    rb_gc_mark(HD_CONTAINER_OF(node, timeout, root_node)->fiber);
}

void hd_timeouts_mark(const hd_scheduler *scheduler)
{
    hd_map_each(&scheduler->timeouts, mark, NULL);
}

static void push_set(hd_map_node *node, void *set)
{
    timeout *timeout = HD_CONTAINER_OF(node, struct timeout, root_node);
    if (!hd_timer_set(&timeout->timer)) return;
    rb_ary_push((VALUE)set, rb_assoc_new(timeout->root, LL2NUM(timeout->timer.deadline_ns)));
}

VALUE hd_timeouts_set(const hd_scheduler *scheduler)
{
    VALUE set = rb_ary_new();
    hd_map_each(&scheduler->timeouts, push_set, (void *)set);
    return set;
}

void hd_timeouts_raise_expired(hd_scheduler *scheduler)
{
    raise_expired(scheduler, HD_MASK_ON_BLOCKING);
}

void hd_timeouts_raise_overdue(hd_scheduler *scheduler)
{
    if (RB_LIKELY(!scheduler->expired) || hd_scheduler_foreign(scheduler)) return;
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
    bool due = forget(timeout); /* first: what is raised here must not leave the record behind */
    if (!NIL_P(timeout->sent)) take_back(timeout);
    if (!due || !NIL_P(timeout->sent)) return Qnil;
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
 * @param blocking [Boolean] is it called in a blocking fiber? (by Heddle itself)
 * @yield [Numeric] the duration
 * @return [Object] what the block returns */
static VALUE hook_timeout_after(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 4);
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
        .blocking = argc > 3 && RTEST(argv[3]),
    };
    if (NIL_P(scheduler->root)) scheduler->root = timeout.root; /* hd_timeouts_strike looks for it */
    if (deadline_ns != HD_NO_DEADLINE) {
        if (hd_timers_add(&scheduler->reactor.limits, &timeout.timer, deadline_ns) < 0) rb_memerror();
        hd_map_add(&scheduler->timeouts, &timeout.root_node, (hd_word)timeout.root);
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

/* When the next timeout may be overdue, of whatever fibers: they may be the next to compute. */
static int64_t next_look(const hd_scheduler *scheduler, int64_t now_ns)
{
    int64_t next_ns = hd_timers_next(&scheduler->reactor.limits);
    if (scheduler->expired || next_ns <= now_ns - GRACE_NS) return now_ns + LOOK_AGAIN_NS;
    return next_ns == HD_NO_DEADLINE ? HD_NO_DEADLINE : next_ns + GRACE_NS;
}

static bool is_overdue(const timeout *timeout, int64_t now_ns)
{
    if (!NIL_P(timeout->sent) || (!timeout->expired && timeout->timer.deadline_ns > now_ns - GRACE_NS)) return false;
    return !hd_interrupt_masked_somewhere(timeout->scheduler, class_of(timeout));
}

/* The timeout that is overdue for longest in the fibers that run, the only ones that may compute; or NULL. */
static timeout *longest_overdue(const hd_scheduler *scheduler, int64_t now_ns)
{
    timeout *longest = NULL;
    for (timeout *one = next_of(scheduler, scheduler->root, NULL); one; one = next_of(scheduler, scheduler->root, one))
        if ((!longest || one->timer.deadline_ns < longest->timer.deadline_ns) && is_overdue(one, now_ns)) longest = one;
    return longest;
}

/* Its fibers neither wait nor are about to go on: they compute. Seen twice without a wait in between: what has just
 * come back from a wait with something in its hands (bytes, a connection) is not struck. Nor is a system call, for the
 * same reason: the loop does not come to it, so the next hook that the fiber calls raises it, if it calls any. */
static timeout *to_strike(hd_scheduler *scheduler, int64_t now_ns)
{
    if (!longest_overdue(scheduler, now_ns)) return NULL;
    const hd_wait *wait = hd_wait_of_chain(scheduler, scheduler->root);
    if (wait && wait->state != HD_WAIT_DONE) return NULL; /* (a signal's handler runs on top of one that is over) */
    if (!runs(scheduler->root)) return NULL;
    bool in_call = in_system_call(scheduler->thread);
    timeout *due = longest_overdue(scheduler, now_ns); /* (they may have called Ruby code) */
    if (!due) return NULL;
    if (in_call && !due->blocking) {
        expire(due);
        return NULL;
    }
    bool suspected = due->suspected && due->parks == scheduler->parks;
    due->suspected = true;
    due->parks = scheduler->parks;
    return suspected ? due : NULL;
}

int64_t hd_timeouts_strike(hd_scheduler *scheduler, int64_t now_ns)
{
    timeout *due = to_strike(scheduler, now_ns);
    if (!due) return next_look(scheduler, now_ns);
    uint64_t sequence = due->timer.sequence;
    VALUE exception = make_exception(due); /* may call Ruby code: the record may be gone with its stack then */
    if (to_strike(scheduler, now_ns) != due || due->timer.sequence != sequence) return now_ns;
    expire(due);
    due->sent = due->raised = exception;
    hd_thread_strike(scheduler->thread, exception);
    return next_look(scheduler, now_ns);
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
