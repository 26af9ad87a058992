/* The hooks block, unblock and kernel_sleep: Mutex, Queue, ConditionVariable, Thread#join, sleep. */
#include "hook_block.h"

#include <errno.h>

#include "fibers/closer.h"
#include "fibers/lock_cycles.h"
#include "fibers/mutex_sleep.h"
#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/unblock_relay.h"
#include "ruby/deadline.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static int wait_for(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject, int64_t deadline_ns)
{
    return hd_park(scheduler, &(hd_request){.kind = kind, .subject = subject, .deadline_ns = deadline_ns});
}

/* Parks the current fiber until unblock or the timeout. It never wakes early, because Queue#pop(timeout:) would start
 * its whole timeout again.
 *
 * @overload block(blocker, timeout = nil)
 *   @param blocker [Object] the object that the fiber waits for, for reports
 *   @param timeout [Numeric, nil] seconds
 *   @return [Boolean] true if unblocked, false if timed out */
static VALUE hook_block(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 2);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    /* A close waits with a Mutex that has no class. Exceptions must not end this wait: see closer.c. */
    if (hd_is_hidden(argv[0]) && hd_closer_waits(scheduler)) {
        hd_closer_wait(scheduler, HD_WAIT_FOR_BLOCK, argv[0]);
        return Qtrue;
    }
    const rb_data_type_t *type = hd_data_type(argv[0]);
    if (type == hd_mutex_type) {
        if (hd_lock_again(scheduler, argv[0])) return Qtrue;
        hd_lock_wanted(scheduler, argv[0]);
    }
    hd_task_awaited(scheduler, argv[0]);
    hd_wait_kind kind = type == hd_thread_type ? HD_WAIT_FOR_THREAD : HD_WAIT_FOR_BLOCK;
    int64_t deadline_ns = hd_deadline_of_limit(argc > 1 ? argv[1] : Qnil);
    return HD_BOOL(wait_for(scheduler, kind, argv[0], deadline_ns) != HD_WOKEN_BY_TIMEOUT);
}

/* Parks the current fiber, whatever its kind, until the queue is closed by another fiber of this thread.
 *
 * @return [Boolean] false if timed out */
static VALUE wait_until_closed(VALUE self, VALUE queue, VALUE timeout)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int64_t deadline_ns = hd_deadline_of_limit(timeout);
    hd_task_awaited(scheduler, queue);
    /* No handler may run between the question and the wait: it might let that other fiber close the queue. */
    while (!RTEST(rb_funcall(queue, rb_intern("closed?"), 0)))
        if (wait_for(scheduler, HD_WAIT_FOR_BLOCK, queue, deadline_ns) == HD_WOKEN_BY_TIMEOUT) return Qfalse;
    return Qtrue;
}

/* May an unblock end this wait? Only block and kernel_sleep end by an unblock. Thread#join of Ruby before 4.0 takes any
 * return for a timeout, so a stale unblock by a Mutex or a Queue must not end it. The unblock for a join comes with the
 * joining thread as the blocker, although the join blocked on the joined one. */
static bool may_unblock(const hd_wait *wait, VALUE blocker)
{
    if (wait->kind == HD_WAIT_FOR_THREAD) return hd_data_type(blocker) == hd_thread_type;
    return wait->kind == HD_WAIT_FOR_BLOCK || wait->kind == HD_WAIT_FOR_SLEEP;
}

static bool meant(const hd_wait *wait, VALUE blocker)
{
    return wait->kind == HD_WAIT_FOR_THREAD ? may_unblock(wait, blocker)
                                            : wait->kind == HD_WAIT_FOR_BLOCK && wait->subject == (hd_word)blocker;
}

/* Returns the wait of the fiber that an unblock is for. If the fiber has several (a signal handler waits on top of
 * another), the unblock is for a wait for the blocker. */
static hd_wait *wait_to_unblock(const hd_scheduler *scheduler, VALUE fiber, VALUE blocker)
{
    hd_wait *wait = NULL, *found = NULL;
    hd_map_node *node = hd_map_find(&scheduler->reactor.waits, (hd_word)fiber);
    bool several = false;
    for (; node; node = hd_map_find_next(&scheduler->reactor.waits, node)) {
        several = wait != NULL;
        wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
        if (!meant(wait, blocker)) continue;
        found = wait;
        if (wait->state == HD_WAIT_PARKED) break;
    }
    return found || several ? found : wait;
}

/* Wakes a fiber that is parked in block or kernel_sleep. It leaves any other fiber alone, because a stale unblock must
 * not complete a wait for IO. Any thread of the Ractor may call it, at any time, also after close.
 *
 * @param blocker [Object] the object that the fiber has waited for
 * @param fiber [Fiber]
 * @return [void] */
static VALUE hook_unblock(VALUE self, VALUE blocker, VALUE fiber)
{
    int saved = errno; /* Ruby before 3.3.7 and 3.4.2 does not preserve it around this hook */
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_wait *wait = wait_to_unblock(scheduler, fiber, blocker);
    if (wait && may_unblock(wait, blocker) && !hd_wake_wait(wait, HD_WOKEN_BY_UNBLOCK))
        hd_relay_unblock(scheduler, wait, blocker);
    bool may_sleep = !wait || wait->kind == HD_WAIT_FOR_SLEEP;
    if (may_sleep && hd_data_type(blocker) == hd_thread_type) hd_closer_unblocked(fiber);
    errno = saved;
    return Qnil;
}

/* Sleeps for Kernel#sleep and Mutex#sleep. Without an argument or with nil, the fiber sleeps until unblocked.
 *
 * @overload kernel_sleep(duration = nil)
 *   @param duration [Numeric, nil] seconds
 *   @return [true]
 *   @raise [ArgumentError, TypeError] as Kernel#sleep does */
VALUE hd_kernel_sleep(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 1);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    VALUE duration = argc ? argv[0] : Qnil;
    if (NIL_P(duration) && hd_closer_waits(scheduler)) {
        hd_closer_wait(scheduler, HD_WAIT_FOR_SLEEP, Qnil);
        return Qtrue;
    }
    hd_mutex_sleep *of_mutex = hd_mutex_sleep_begins(scheduler);
    VALUE condition = of_mutex ? of_mutex->condition : Qnil;
    hd_wait_kind kind = NIL_P(condition) ? HD_WAIT_FOR_SLEEP : HD_WAIT_FOR_BLOCK;
    int wake = HD_WOKEN_BY_TIMEOUT;
    if (duration == INT2FIX(0))
        hd_yield(scheduler);
    else
        wake = wait_for(scheduler, kind, condition, hd_deadline_from(duration));
    if (of_mutex) of_mutex->timed_out = wake == HD_WOKEN_BY_TIMEOUT;
    return Qtrue;
}

void hd_init_hooks_block(void)
{
    rb_define_method(hd_cScheduler, "block", hook_block, -1);
    rb_define_method(hd_cScheduler, "unblock", hook_unblock, 2);
    rb_define_private_method(hd_cScheduler, "wait_until_closed", wait_until_closed, 2);
    rb_define_method(hd_cScheduler, "kernel_sleep", hd_kernel_sleep, -1);
}
