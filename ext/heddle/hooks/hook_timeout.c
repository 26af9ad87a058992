/* The hook timeout_after: Timeout.timeout inside a fiber. */
#include "fibers/pending/overdue.h"
#include "ruby/deadline.h"
#include "ruby/init.h"

static VALUE cExitException, cTimeoutError;

static VALUE call_block(VALUE pointer)
{
    return rb_yield(((hd_timeout *)pointer)->duration);
}

static VALUE remove_timeout(VALUE pointer)
{
    hd_timeout *timeout = (void *)pointer;
    hd_scheduler *scheduler = timeout->pending.scheduler;
    hd_scheduler_check_fork(scheduler);
    if (timeout->generation != scheduler->reactor.generation) return Qnil;
    if (!NIL_P(timeout->raised)) hd_pending_withdraw_everywhere(scheduler, timeout->raised);
    /* first, because an exception raised here must not leave the record behind */
    bool due = hd_timeout_forget(timeout);
    if (!NIL_P(timeout->sent)) hd_overdue_take_back(timeout);
    if (!due || !NIL_P(timeout->sent)) return Qnil;
    hd_recipient recipient = {timeout->root, timeout->pending.kept, timeout->pending.began, true};
    if (hd_interrupt_mask(scheduler, recipient, timeout->pending.exception) == HD_MASK_IMMEDIATE) return Qnil;
    /* The exception is masked, and the end of the mask raises it, because nobody else could. */
    VALUE exception = hd_timeout_exception(timeout);
    VALUE owner = hd_interrupt_mask_owner(scheduler, recipient, exception);
    if (!NIL_P(owner)) hd_raise_later(scheduler, owner, exception);
    return Qnil;
}

static VALUE call_block_ensured(VALUE pointer)
{
    return rb_ensure(call_block, pointer, remove_timeout, pointer);
}

static VALUE timeout_error(VALUE pointer, VALUE exception)
{
    hd_timeout *timeout = (void *)pointer;
    if (exception != timeout->raised) rb_exc_raise(exception);
    VALUE error = rb_class_new_instance(1, &timeout->message, cTimeoutError);
    rb_ivar_set(error, rb_intern("cause"), exception);
    rb_funcall(rb_const_get(hd_mHeddle, rb_intern("TaskFailure")), rb_intern("pass_on"), 2, exception, error);
    rb_exc_raise(error);
}

/* Calls the block; raises the exception in it when the time is over.
 *
 * @overload timeout_after(duration, exception = nil, message = "execution expired")
 *   @param duration [Numeric] seconds
 *   @param exception [Class, Exception, nil] nil: Timeout::Error, which a rescue inside of the block does not see
 *   @param message [String, nil]
 *   @yieldparam duration [Numeric]
 *   @return [Object] what the block returns */
static VALUE hook_timeout_after(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 3);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int64_t deadline_ns = hd_deadline_of_limit(argv[0]);
    hd_timeout timeout = {
        .pending = {.scheduler = scheduler,
                    .kept = rb_fiber_current(),
                    .exception = Qnil,
                    .began = hd_block_begins(scheduler)},
        .generation = scheduler->reactor.generation,
        .root = hd_root(scheduler),
        .duration = argv[0],
        .exception = argc > 1 ? argv[1] : Qnil,
        .message = argc > 2 ? argv[2] : rb_str_new_cstr("execution expired"),
        .raised = Qnil,
        .sent = Qnil,
    };
    scheduler->running.root = timeout.root; /* overdue.c looks for it, also where no loop turns */
    if (deadline_ns != HD_NO_DEADLINE) {
        hd_overdue_register(scheduler);
        hd_timeout_set(&timeout, scheduler, deadline_ns);
        hd_overdue_expect(scheduler, deadline_ns);
    }
    if (!NIL_P(timeout.exception)) return call_block_ensured((VALUE)&timeout);
    return rb_rescue2(call_block_ensured, (VALUE)&timeout, timeout_error, (VALUE)&timeout, cExitException, (VALUE)0);
}

void hd_init_hooks_timeout(void)
{
    cExitException = rb_path2class("Timeout::ExitException");
    cTimeoutError = rb_path2class("Timeout::Error");
    rb_gc_register_mark_object(cExitException);
    rb_gc_register_mark_object(cTimeoutError);
    rb_define_method(hd_cScheduler, "timeout_after", hook_timeout_after, -1);
}
