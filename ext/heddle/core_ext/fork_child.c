/* Frees the IOs that the parent's fibers hold in the child of a fork: for Process._fork (core_ext/fork.rb).
 *
 * Ruby frees the locks that other threads hold there. But a fiber of the thread that has forked may also hold the lock
 * of an IO to which it writes, and this fiber never goes on in the child. Every write to that IO would wait for ever.
 */
#include "fibers/scheduler.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static void add_writer(hd_map_node *node, void *writers)
{
    VALUE io = (VALUE)HD_CONTAINER_OF(node, hd_wait, fiber_node)->subject;
    if (RB_TYPE_P(io, T_FILE) && hd_io_is_being_written(io)) rb_ary_push((VALUE)writers, io);
}

/* Finds the IOs before the fork, because the waits cannot be looked at afterwards.
 *
 * @return [Array<IO>] the IOs to which waiting fibers write */
static VALUE busy_writers(VALUE self)
{
    VALUE writers = rb_ary_new();
    hd_map_each(&hd_scheduler_get(self)->reactor.waits, add_writer, (void *)writers);
    return writers;
}

static VALUE write_nothing(VALUE io)
{
    VALUE empty[] = {rb_str_new(NULL, 0), rb_str_new(NULL, 0)};
    ID kept = HD_KEPT("write");
    return rb_funcallv(io, rb_method_boundp(rb_cIO, kept, 0) ? kept : rb_intern("write"), 2, empty);
}

/* Forgets the fiber that holds the lock of this IO. Called in the child. */
static VALUE forget_writer(VALUE class, VALUE io)
{
    if (hd_io_is_being_written(io)) hd_io_forget_writer(io, write_nothing);
    return Qnil;
}

void hd_init_fork_child(void)
{
    rb_define_private_method(hd_cScheduler, "busy_writers", busy_writers, 0);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "forget_writer", forget_writer, 1);
}
