/* Blocking operations that a thread of the pool does: what lib/heddle/scheduler/blocking_job.rb needs of C. */

#include <errno.h>
#include <fcntl.h>

#include "../os/thread.h"
#include "init.h"
#include "scheduler.h"

/* For a thread of the pool: does a blocking operation of Ruby's. The errno that it leaves, or 0. */
static VALUE errno_of(VALUE self, VALUE operation)
{
    (void)self;
    errno = 0;
    rb_funcall(operation, rb_intern("call"), 0);
    return INT2FIX(errno);
}

/* @private May a thread of the pool be started? (Thread.new of Ruby 3.3 stops the program for good if it fails.) */
static VALUE thread_can_start_p(VALUE class)
{
    (void)class;
    return HD_BOOL(hd_thread_can_start());
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

/* For a thread of the pool: open(2), which may wait. The descriptor or -errno; -EINTR if the thread is interrupted. */
static VALUE open_descriptor(VALUE self, VALUE path, VALUE flags)
{
    (void)self;
    open_call opening = {StringValueCStr(path), NUM2INT(flags), -EINTR};
    rb_thread_call_without_gvl2(open_without_gvl, &opening, RUBY_UBF_IO, NULL);
    RB_GC_GUARD(path);
    return INT2FIX(opening.result);
}

/* For the fiber that waits: runs the block; a Fiber#kill that comes meanwhile ends only that. Ruby strikes again at the
 * end of every switch to the fiber.
 *
 * @return [Boolean] did one come? */
static VALUE outlast_kill(VALUE self)
{
    (void)self;
    VALUE error = rb_errinfo();
    int state = 0;
    rb_protect(rb_yield, Qnil, &state);
    if (!state) return Qfalse;
    if (rb_errinfo() != HD_FIBER_KILLED) rb_jump_tag(state);
    rb_set_errinfo(RTEST(rb_obj_is_kind_of(error, rb_eException)) ? error : Qnil);
    return Qtrue;
}

void hd_init_pool_calls(void)
{
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "thread_can_start?", thread_can_start_p, 0);
    rb_define_private_method(hd_cScheduler, "open_descriptor", open_descriptor, 2);
    rb_define_private_method(hd_cScheduler, "errno_of", errno_of, 1);
    rb_define_private_method(hd_cScheduler, "outlast_kill", outlast_kill, 0);
}
