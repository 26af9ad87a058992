/* Blocking operations on a thread of the pool: the part of lib/heddle/scheduler/blocking_job.rb that is in C. */

#include <errno.h>
#include <fcntl.h>

#include "fibers/scheduler.h"
#include "os/thread.h"
#include "ruby/caught.h"
#include "ruby/init.h"

/* Makes a blocking operation of Ruby's, on a thread of the pool. Returns the errno that it leaves, or 0. */
static VALUE errno_of(VALUE self, VALUE operation)
{
    errno = 0;
    rb_funcall(operation, rb_intern("call"), 0);
    return INT2FIX(errno);
}

/* @private May a thread of the pool be started? Thread.new of Ruby 3.3 stops the program for good if it fails. */
static VALUE thread_can_start_p(VALUE class)
{
    return HD_BOOL(hd_thread_can_start());
}

/* @private Raises SystemStackError if little is left of the fiber's C stack. */
static VALUE need_stack(VALUE class)
{
    if (ruby_stack_check()) rb_raise(rb_eSysStackError, "stack level too deep");
    return Qnil;
}

typedef struct {
    const char *path;
    int flags, result;
} open_call;

static void *open_without_gvl(void *pointer)
{
    open_call *opening = pointer;
    opening->result = open(opening->path, opening->flags | O_CLOEXEC, 0666);
    if (opening->result < 0) opening->result = -errno;
    return NULL;
}

/* Calls open(2), which may wait, on a thread of the pool. Returns the descriptor or -errno; -EINTR if the thread is
 * interrupted. */
static VALUE open_descriptor(VALUE self, VALUE path, VALUE flags)
{
    open_call opening = {StringValueCStr(path), NUM2INT(flags), -EINTR};
    rb_thread_call_without_gvl2(open_without_gvl, &opening, RUBY_UBF_IO, NULL);
    RB_GC_GUARD(path);
    return INT2FIX(opening.result);
}

/* Calls the block until it returns true, for a fiber that waits and has room for the exceptions. An exception or a
 * Fiber#kill ends only one of the calls; the other calls get the exceptions that have come by then. A Thread#kill and a
 * throw go on. This is in C, because in a loop of Ruby's an exception that follows at once would be raised between two
 * calls.
 *
 * @return [Array<Exception, true>, nil] the exceptions in their order; true: a Fiber#kill */
static VALUE outlast(VALUE self)
{
    VALUE before = rb_errinfo(), came = Qnil;
    for (;;) {
        hd_caught caught;
        VALUE done = hd_catch(rb_yield, came, &caught);
        if (!caught.state && RTEST(done)) return came;
        if (!caught.state) continue;
        bool kill = hd_is_kill(&caught);
        if (!kill && NIL_P(caught.exception)) hd_go_on(&caught);
        if (kill) hd_restore_errinfo(before);
        if (NIL_P(came)) came = rb_ary_new();
        if (!kill || !RTEST(rb_ary_includes(came, Qtrue))) rb_ary_push(came, kill ? Qtrue : caught.exception);
    }
}

void hd_init_pool_calls(void)
{
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "thread_can_start?", thread_can_start_p, 0);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "need_stack", need_stack, 0);
    rb_define_private_method(hd_cScheduler, "open_descriptor", open_descriptor, 2);
    rb_define_private_method(hd_cScheduler, "errno_of", errno_of, 1);
    rb_define_private_method(hd_cScheduler, "outlast", outlast, 0);
}
