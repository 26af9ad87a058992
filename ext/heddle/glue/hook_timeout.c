/* The hook timeout_after: Timeout.timeout inside a fiber. The deadline is a record on the C stack of the fiber
 * that set it; no object is made until it fires. */
#include "timeout.h"

#include "park.h"

typedef struct {
    hd_timer timer;
    hd_node expired_node; /* in scheduler->expired once due and not yet raised */
    hd_scheduler *scheduler;
    VALUE fiber, root; /* on whose stack this is; of the chain of fibers that is to raise */
    VALUE duration, exception, message;
    unsigned generation; /* the reactor's: a fork in between voids the record */
} timeout;

/* Runs while the loop reaps: only marks. The chain of fibers raises when it wakes, or, when it is not parked (its wake
 * is on the way already), when it parks next. */
static void timeout_fired(hd_timer *timer)
{
    timeout *due = HD_CONTAINER_OF(timer, timeout, timer);
    hd_list_push_back(&due->scheduler->expired, &due->expired_node);
    hd_wait *wait = hd_wait_of_chain(due->scheduler, due->root);
    if (wait) hd_wait_settle(wait, HD_WOKEN_BY_EXCEPTION);
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

void hd_timeouts_raise_expired(hd_scheduler *scheduler)
{
    VALUE root = hd_root(scheduler);
    for (hd_node *node = hd_list_first(&scheduler->expired); node; node = hd_list_after(&scheduler->expired, node)) {
        timeout *due = HD_CONTAINER_OF(node, timeout, expired_node);
        if (due->root != root) continue;
        hd_node_remove(node);
        VALUE arguments[] = {due->exception, due->message};
        rb_exc_raise(rb_make_exception(NIL_P(due->message) ? 1 : 2, arguments));
    }
}

static VALUE call_block(VALUE pointer)
{
    return rb_yield(((timeout *)pointer)->duration);
}

static VALUE remove_timeout(VALUE pointer)
{
    timeout *timeout = (void *)pointer;
    hd_scheduler_check_fork(timeout->scheduler);
    if (timeout->generation != timeout->scheduler->reactor.generation) return Qnil;
    if (hd_timer_set(&timeout->timer)) hd_timers_remove(&timeout->scheduler->reactor.timers, &timeout->timer);
    if (hd_node_linked(&timeout->expired_node)) hd_node_remove(&timeout->expired_node);
    return Qnil;
}

/* Calls the block; raises the exception in it when the time is over.
 *
 * @param duration [Numeric] seconds
 * @param exception [Class, Exception]
 * @param message [String, nil]
 * @yield [Numeric] the duration
 * @return [Object] what the block returns */
static VALUE hook_timeout_after(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 3);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int64_t deadline_ns = hd_deadline_from(argv[0]);
    timeout timeout = {
        .timer.fire = timeout_fired,
        .scheduler = scheduler,
        .generation = scheduler->reactor.generation,
        .fiber = rb_fiber_current(),
        .root = hd_root(scheduler),
        .duration = argv[0],
        .exception = argc > 1 && !NIL_P(argv[1]) ? argv[1] : rb_path2class("Timeout::Error"),
        .message = argc > 2 ? argv[2] : rb_str_new_cstr("execution expired"),
    };
    if (deadline_ns != HD_NO_DEADLINE && hd_timers_add(&scheduler->reactor.timers, &timeout.timer, deadline_ns) < 0)
        rb_memerror();
    return rb_ensure(call_block, (VALUE)&timeout, remove_timeout, (VALUE)&timeout);
}

void hd_init_hooks_timeout(void)
{
    rb_define_method(hd_cScheduler, "timeout_after", hook_timeout_after, -1);
}
