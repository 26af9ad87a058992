/* The hooks io_close and fiber_interrupt. */
#include "fibers/pending/pending.h"
#include "io/closing.h"
#include "ruby/init.h"

/* Closes the descriptor inline. It runs inside GC finalizers, too, so it never switches fibers. Without it, Ruby 4.0
 * would send every close of a writable descriptor to a worker.
 *
 * @param fd [Integer]
 * @return [true] */
static VALUE hook_io_close(VALUE self, VALUE fd)
{
    hd_scheduler_get(self);
    int error = hd_close_descriptor(NUM2INT(fd));
    if (error && !rb_during_gc()) rb_syserr_fail(-error, NULL);
    return Qtrue;
}

static bool blocks_natively(hd_scheduler *scheduler, VALUE fiber)
{
    return !hd_wait_of(scheduler, fiber) && RTEST(rb_obj_is_fiber(fiber)) &&
           RTEST(rb_funcall(fiber, rb_intern("blocking?"), 0)) && !NIL_P(scheduler->thread) &&
           hd_scheduler_foreign(scheduler);
}

/* Ends the operation of a fiber whose IO is closed; Ruby 4.0 calls it. A fiber that is no longer parked has finished
 * its operation, and the error would be raised in a later one (Bug #21918). So the error is dropped, and Ruby raises by
 * itself when the fiber next touches the IO.
 *
 * @param fiber [Fiber]
 * @param exception [Exception]
 * @return [void] */
static VALUE hook_fiber_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (!hd_interrupt_operation(scheduler, fiber, exception) && blocks_natively(scheduler, fiber))
        rb_funcall(scheduler->thread, rb_intern("raise"), 1, exception); /* nobody else wakes it */
    return Qnil;
}

void hd_init_hooks_close(void)
{
    rb_define_method(hd_cScheduler, "io_close", hook_io_close, 1);
    rb_define_method(hd_cScheduler, "fiber_interrupt", hook_fiber_interrupt, 2);
}
