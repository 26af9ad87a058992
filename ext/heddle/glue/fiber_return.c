/* See fiber_return.h. */
#include "fiber_return.h"

#include "caught.h"
#include "strike.h"
#include "thread_calls.h"

bool hd_control_may_come_here(const hd_scheduler *scheduler)
{
    return !scheduler->running.scheduled || scheduler->running.root == scheduler->home.fiber;
}

typedef struct {
    VALUE fiber;
    int argc;
    const VALUE *argv;
} transfer_call;

static VALUE transfer(VALUE pointer)
{
    const transfer_call *call = (void *)pointer;
    VALUE value = rb_fiber_transfer(call->fiber, call->argc, call->argv);
    RB_GC_GUARD(((transfer_call *)pointer)->fiber); /* see switch_to in loop.c */
    return value;
}

/* (The task has resumed a fiber, and that one has called transfer: only an exception finds the way to it.) */
static VALUE refuse(VALUE fiber)
{
    VALUE error = rb_exc_new_cstr(rb_path2class("FiberError"),
                                  "the fiber that this one has transferred to has ended, and its value cannot be "
                                  "brought here: let it transfer back");
    return rb_fiber_raise(fiber, 1, &error);
}

typedef struct {
    VALUE root, error, value;
} send_call;

static VALUE send_back(VALUE pointer)
{
    send_call *call = (void *)pointer;
    VALUE value;
    if (!NIL_P(call->error))
        value = rb_fiber_raise(call->root, 1, &call->error);
    else if (hd_resumes_another(call->root))
        value = refuse(call->root);
    else
        value = rb_fiber_transfer(call->root, 1, &call->value);
    RB_GC_GUARD(call->root);
    return value;
}

/* Is the fiber that ran neither at its end nor waiting for anything? (Without a stack it has not begun.) */
static bool left_alone(hd_scheduler *scheduler)
{
    VALUE root = scheduler->running.root;
    return !NIL_P(root) && root != scheduler->home.fiber && !scheduler->fibers.starting &&
           RTEST(rb_fiber_alive_p(root)) && root != rb_fiber_current() && !hd_wait_of_chain(scheduler, root);
}

VALUE hd_call_and_send_back(hd_scheduler *scheduler, VALUE (*function)(VALUE), VALUE argument)
{
    unsigned generation = hd_fork_generation;
    int state = 0;
    VALUE value = rb_protect(function, argument, &state);
    while (!hd_forked_since(generation) && RB_UNLIKELY(left_alone(scheduler))) {
        send_call call = {scheduler->running.root, Qnil, value};
        if (state) {
            call.error = rb_errinfo();
            if (!hd_is_exception(call.error) || hd_thread_was_sent(scheduler, call.error)) break;
            rb_set_errinfo(Qnil);
        }
        state = 0;
        value = rb_protect(send_back, (VALUE)&call, &state);
    }
    if (state) rb_jump_tag(state);
    return value;
}

VALUE hd_transfer_and_send_back(hd_scheduler *scheduler, VALUE fiber, int argc, const VALUE *argv)
{
    transfer_call call = {fiber, argc, argv};
    return hd_call_and_send_back(scheduler, transfer, (VALUE)&call);
}
