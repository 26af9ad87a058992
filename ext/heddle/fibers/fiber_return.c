/* See fiber_return.h. */
#include "fiber_return.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "thread_calls.h"

/* Was a fiber left alone? True if control has come to the caller without a switch by the scheduler, and the fiber
 * that ran before has not ended and waits for nothing. A fiber without a stack has not begun, and does not count. */
static bool is_left_alone(hd_scheduler *scheduler)
{
    VALUE root = scheduler->running.root;
    return !NIL_P(root) && root != scheduler->home.fiber && !scheduler->fibers.starting &&
           RTEST(rb_fiber_alive_p(root)) && root != rb_fiber_current() && !hd_wait_of_chain(scheduler, root);
}

/* Raises FiberError when the value cannot be sent back: the task has resumed a fiber, and that fiber has called
 * transfer. Only an exception can reach the task then. */
static VALUE refuse(VALUE fiber)
{
    VALUE error = rb_exc_new_cstr(rb_path2class("FiberError"),
                                  "the fiber that this one has transferred to has ended, and its value cannot be "
                                  "brought here: let it transfer back");
    return rb_fiber_raise(fiber, 1, &error);
}

VALUE hd_send_back(hd_scheduler *scheduler, VALUE value)
{
    unsigned generation = hd_fork_generation;
    while (!hd_forked_since(generation) && is_left_alone(scheduler)) {
        VALUE root = scheduler->running.root;
        value = hd_resumes_another(root) ? refuse(root) : rb_fiber_transfer(root, 1, &value);
        RB_GC_GUARD(root);
    }
    return value;
}

static VALUE raise_in_running(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    VALUE root = scheduler->running.root, error = rb_errinfo();
    VALUE value = rb_fiber_raise(root, 1, &error);
    RB_GC_GUARD(root);
    return hd_send_back(scheduler, value);
}

/* Sends an exception back; see fiber_return.h. It does not if the caller is being killed: then errinfo holds a number
 * in place of an exception (ruby/caught.c), and this number could not be put back. */
bool hd_send_error_back(hd_scheduler *scheduler, VALUE before, int *state)
{
    VALUE error = rb_errinfo();
    if (!hd_is_exception(error) || !(NIL_P(before) || hd_is_exception(before))) return false;
    if (!is_left_alone(scheduler) || hd_thread_was_sent(scheduler, error)) return false;
    rb_protect(raise_in_running, (VALUE)scheduler, state);
    if (!*state) rb_set_errinfo(before);
    return true;
}
