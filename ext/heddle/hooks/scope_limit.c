/* The class Heddle::ScopeLimit: what ends the block of a Heddle.scope from outside, its deadline or Scope#cancel. It is
 * a timeout (timeout.h) whose record lies in an object, because it may be set, moved and ended from anywhere while the
 * block runs. The record is in a queue only while a deadline is set, or the block must end. So the GC can collect
 * an Enumerator whose block is in a scope, and which nobody asks any more. */
#include "fibers/pending/overdue.h"
#include "ruby/deadline.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

typedef struct {
    hd_timeout timeout;
    bool open; /* does the block run? */
} scope_limit;

static void limit_mark(void *pointer)
{
    const hd_timeout *timeout = &((scope_limit *)pointer)->timeout;
    const VALUE objects[] = {timeout->root, timeout->pending.kept, timeout->pending.exception, timeout->exception,
                             timeout->raised, timeout->sent};
    if (!timeout->pending.scheduler) return;
    rb_gc_mark(timeout->pending.scheduler->self);
    for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) rb_gc_mark(objects[i]);
}

/* Freed only when the block has ended, or with the scheduler: the queue keeps the fiber, and the fiber this object. */
static const rb_data_type_t limit_type = {
    .wrap_struct_name = "Heddle::ScopeLimit",
    .function = {.dmark = limit_mark, .dfree = RUBY_TYPED_DEFAULT_FREE},
};

static scope_limit *limit_of(VALUE self)
{
    return rb_check_typeddata(self, &limit_type);
}

static VALUE limit_alloc(VALUE class)
{
    scope_limit *limit;
    return TypedData_Make_Struct(class, scope_limit, &limit_type, limit);
}

/* Does the block still run, in this process? */
static bool is_open(scope_limit *limit)
{
    hd_scheduler *scheduler = limit->timeout.pending.scheduler;
    if (!limit->open) return false;
    hd_scheduler_check_fork(scheduler);
    return limit->timeout.generation == scheduler->reactor.generation;
}

static bool must_end(const hd_timeout *timeout)
{
    return timeout->pending.due || !NIL_P(timeout->raised);
}

/* Makes the limit of a scope, in the fiber that is about to call the scope's block.
 *
 * @param number [Integer] of the block: see pending.h */
static VALUE limit_initialize(VALUE self, VALUE scheduler, VALUE number)
{
    hd_scheduler *owner = hd_scheduler_ready(scheduler);
    limit_of(self)->timeout = (hd_timeout){
        .pending = {.scheduler = owner, .kept = rb_fiber_current(), .exception = Qnil, .began = NUM2ULL(number)},
        .generation = owner->reactor.generation,
        .root = hd_root(owner),
        .exception = Qnil,
        .message = Qnil,
        .raised = Qnil,
        .sent = Qnil,
    };
    return Qnil;
}

static VALUE close_limit(VALUE self)
{
    scope_limit *limit = limit_of(self);
    hd_timeout *timeout = &limit->timeout;
    bool open = is_open(limit), cancelled = timeout->pending.due && !timeout->pending.limits;
    limit->open = false;
    if (!open) return Qnil;
    if (cancelled && NIL_P(timeout->raised)) timeout->raised = timeout->pending.exception;
    hd_timeout_forget(timeout);
    if (!NIL_P(timeout->raised)) hd_pending_withdraw_everywhere(timeout->pending.scheduler, timeout->raised);
    if (!NIL_P(timeout->sent)) hd_overdue_take_back(timeout);
    return Qnil;
}

/* Calls the block, which may be ended until it returns. */
static VALUE limit_around(VALUE self)
{
    hd_timeout *timeout = &limit_of(self)->timeout;
    hd_scheduler *scheduler = timeout->pending.scheduler;
    scheduler->running.root = timeout->root; /* overdue.c looks for it, also where no loop turns */
    limit_of(self)->open = true;
    return rb_ensure(rb_yield, Qnil, close_limit, self);
}

/* Sets the deadline, moves it, or takes it away. Does nothing if the block has ended, or must end.
 *
 * @param seconds [Numeric, nil] from now on
 * @param exception [Exception, nil] is raised in the block when the time is over */
static VALUE limit_set(VALUE self, VALUE seconds, VALUE exception)
{
    scope_limit *limit = limit_of(self);
    hd_timeout *timeout = &limit->timeout;
    hd_scheduler *scheduler = timeout->pending.scheduler;
    int64_t deadline_ns = hd_deadline_of_limit(seconds);
    if (!is_open(limit) || must_end(timeout)) return Qnil;
    hd_timeout_forget(timeout);
    if (deadline_ns != HD_NO_DEADLINE) {
        hd_overdue_register(scheduler);
        timeout->exception = exception;
        hd_timeout_set(timeout, scheduler, deadline_ns);
        hd_overdue_expect(scheduler, deadline_ns);
    }
    hd_reactor_wake_if_asleep(&scheduler->reactor); /* another thread may have called this */
    return Qnil;
}

/* Ends the block as a cancel does: the exception is raised where its fiber waits, or at its next wait.
 *
 * @return [Boolean] does the block still run? */
static VALUE limit_end_block(VALUE self, VALUE exception)
{
    scope_limit *limit = limit_of(self);
    hd_timeout *timeout = &limit->timeout;
    hd_scheduler *scheduler = timeout->pending.scheduler;
    if (!is_open(limit)) return Qfalse;
    if (must_end(timeout)) return Qtrue;
    VALUE fiber = timeout->pending.kept;
    bool waits_in_another = fiber != timeout->root && !hd_wait_of(scheduler, fiber) && hd_resumes_another(fiber);
    timeout->exception = exception;
    hd_timeout_cancel(timeout, waits_in_another ? timeout->root : fiber);
    return Qtrue;
}

/* @return [Exception, nil] the exception that has ended the block, or would have done so if nothing had rescued it */
static VALUE limit_raised(VALUE self)
{
    return limit_of(self)->timeout.raised;
}

static VALUE seconds_until(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hd_clock_now();
    return DBL2NUM(left_ns > 0 ? (double)left_ns / HD_NS_PER_SECOND : 0.0);
}

/* @return [Float, nil] the seconds until its deadline; nil: it has none, or the block has ended */
static VALUE limit_left(VALUE self)
{
    scope_limit *limit = limit_of(self);
    if (!is_open(limit)) return Qnil;
    if (must_end(&limit->timeout)) return DBL2NUM(0.0);
    return hd_timer_set(&limit->timeout.timer) ? seconds_until(limit->timeout.timer.deadline_ns) : Qnil;
}

/* @param root [Fiber] of a chain of fibers
 * @param number [Integer, nil] only the limits of this block and of blocks further out count; nil: all
 * @return [Float, nil] the seconds until the earliest limit of the chain; nil: it has none */
static VALUE scheduler_time_left(VALUE self, VALUE root, VALUE number)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    uint64_t innermost = NIL_P(number) ? UINT64_MAX : NUM2ULL(number);
    int64_t earliest_ns = HD_NO_DEADLINE;
    for (hd_pending *pending = NULL; (pending = hd_pending_next(scheduler, root, pending));) {
        if (!pending->limits || pending->began > innermost) continue;
        earliest_ns = hd_earlier(earliest_ns, pending->due ? 0 : hd_timeout_of(pending)->timer.deadline_ns);
    }
    return earliest_ns == HD_NO_DEADLINE ? Qnil : seconds_until(earliest_ns);
}

void hd_init_scope_limit(void)
{
    VALUE class = rb_define_class_under(hd_mHeddle, "ScopeLimit", rb_cObject);
    rb_define_alloc_func(class, limit_alloc);
    rb_define_method(class, "initialize", limit_initialize, 2);
    rb_define_method(class, "around", limit_around, 0);
    rb_define_method(class, "set", limit_set, 2);
    rb_define_method(class, "end_block", limit_end_block, 1);
    rb_define_method(class, "raised", limit_raised, 0);
    rb_define_method(class, "left", limit_left, 0);
    rb_define_private_method(hd_cScheduler, "time_left", scheduler_time_left, 2);
}
