/* Replaces IO#close, close_read, close_write and reopen: see io/closing.h. */
#include <poll.h>

#include "io/closing.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static VALUE io_close(VALUE io)
{
    return hd_close_for(io, HD_KEPT("close"), POLLIN | POLLOUT);
}

static VALUE io_close_read(VALUE io)
{
    ID kept = HD_KEPT("close_read");
    if (hd_stays_open(io, FMODE_WRITABLE)) return hd_shut_down(io, kept, POLLIN | POLLPRI);
    bool has_write_io = RB_TYPE_P(io, T_FILE) && rb_io_get_write_io(io) != io;
    VALUE result = hd_close_for(io, kept, POLLIN);
    if (has_write_io) hd_io_take_over(io);
    return result;
}

static VALUE io_close_write(VALUE io)
{
    ID kept = HD_KEPT("close_write");
    return hd_stays_open(io, FMODE_READABLE) ? hd_shut_down(io, kept, POLLOUT) : hd_close_for(io, kept, POLLOUT);
}

static VALUE io_reopen(int argc, VALUE *argv, VALUE io)
{
    return hd_reopen(io, HD_KEPT("reopen"), argc, argv);
}

static VALUE io_wake_waiters(VALUE self, VALUE io)
{
    hd_wake_waiters(io);
    return Qnil;
}

void hd_init_io_close(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    VALUE close = rb_define_module_under(core_ext, "IOClose");
    rb_define_method(close, "close", io_close, 0);
    rb_define_method(close, "reopen", io_reopen, -1);
    rb_define_singleton_method(close, "wake_waiters", io_wake_waiters, 1);
    VALUE half_close = rb_define_module_under(core_ext, "IOHalfClose");
    rb_define_method(half_close, "close_read", io_close_read, 0);
    rb_define_method(half_close, "close_write", io_close_write, 0);
}
