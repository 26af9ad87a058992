/* See timeout.h. */
#include "timeout.h"

#include "ruby/init.h"

static VALUE cExitException;
static ID id_cause; /* where Ruby keeps an exception's cause */

/* Ends the wait; runs while the loop reaps. The chain of fibers raises the exception when it runs. If it is not
 * parked, because its wake is already on the way, it raises when it next parks. */
static void timer_fired(hd_timer *timer)
{
    hd_timeout *due = HD_CONTAINER_OF(timer, hd_timeout, timer);
    hd_timeout_expire(due);
    hd_pending_deliver(&due->pending);
}

static VALUE take(hd_pending *pending)
{
    hd_timeout *due = hd_timeout_of(pending);
    hd_timeout_forget(due);
    if (NIL_P(due->sent)) return due->raised = hd_timeout_exception(due);
    rb_thread_check_ints(); /* it was sent to the thread, and must be raised here */
    return Qundef;
}

static void drop(hd_pending *pending)
{
    hd_timeout_forget(hd_timeout_of(pending));
}

static void add_pending(hd_timeout *timeout, hd_scheduler *scheduler, VALUE fiber, bool limits)
{
    hd_pending *pending = &timeout->pending;
    pending->limits = limits;
    /* If the caller has named no class, the exception is of a class that `rescue => e` inside of the block does not
     * swallow. The frame of the timeout makes a Timeout::Error of it. Timeout::Error.handle_timeout does the same,
     * but makes the exception beforehand. */
    pending->exception = NIL_P(timeout->exception) ? cExitException : timeout->exception;
    pending->take = take;
    pending->drop = drop;
    hd_pending_add(pending, scheduler, fiber);
}

void hd_timeout_set(hd_timeout *timeout, hd_scheduler *scheduler, int64_t deadline_ns)
{
    timeout->timer.fire = timer_fired;
    if (hd_timers_add(&scheduler->reactor.limits, &timeout->timer, deadline_ns) < 0) rb_memerror();
    add_pending(timeout, scheduler, timeout->root, true);
}

/* A wait that lock_cycles.c has left out may have no limit from now on, also if the time is over: perhaps its exception
 * cannot be raised there. */
static void stop_timer(hd_timeout *timeout)
{
    hd_scheduler *scheduler = timeout->pending.scheduler;
    if (hd_timer_set(&timeout->timer)) hd_timers_remove(&scheduler->reactor.limits, &timeout->timer);
    scheduler->locks.changed |= scheduler->locks.limited && scheduler->locks.wanted;
}

void hd_timeout_cancel(hd_timeout *timeout, VALUE fiber)
{
    hd_scheduler *scheduler = timeout->pending.scheduler;
    hd_timeout_forget(timeout);
    add_pending(timeout, scheduler, fiber, false);
    hd_pending_make_due(&timeout->pending);
    scheduler->counted.cancels++;
    hd_pending_deliver(&timeout->pending);
}

void hd_timeout_expire(hd_timeout *timeout)
{
    stop_timer(timeout);
    hd_pending_make_due(&timeout->pending);
}

bool hd_timeout_forget(hd_timeout *timeout)
{
    stop_timer(timeout);
    return hd_pending_remove(&timeout->pending);
}

VALUE hd_timeout_exception(const hd_timeout *timeout)
{
    VALUE arguments[] = {timeout->pending.exception, timeout->message};
    VALUE exception = rb_make_exception(NIL_P(timeout->message) ? 1 : 2, arguments);
    /* It has no cause, as an exception that Thread#raise brings (eval.c, rb_ec_setup_exception). */
    if (!OBJ_FROZEN(exception)) rb_ivar_set(exception, id_cause, Qnil);
    hd_pending_note_raised(timeout->pending.scheduler, exception, timeout->pending.began);
    return exception;
}

static void push_set(hd_map_node *node, void *set)
{
    hd_pending *pending = HD_CONTAINER_OF(node, hd_pending, fiber_node);
    if (pending->limits && hd_timer_set(&hd_timeout_of(pending)->timer))
        rb_ary_push((VALUE)set, rb_assoc_new((VALUE)node->key, LL2NUM(hd_timeout_of(pending)->timer.deadline_ns)));
}

VALUE hd_timeouts_set(const hd_scheduler *scheduler)
{
    VALUE set = rb_ary_new();
    hd_map_each(&scheduler->pending.by_fiber, push_set, (void *)set);
    return set;
}

void hd_init_timeout(void)
{
    rb_require("timeout");
    id_cause = rb_intern("cause");
    cExitException = rb_path2class("Timeout::ExitException");
    rb_gc_register_mark_object(cExitException);
}
