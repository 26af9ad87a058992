/* IO#flush in a fiber of a scheduler.
 *
 * The problem: Ruby up to 3.4 makes the system call of a flush without asking the scheduler. A full pipe in blocking
 * mode, such as the standard output of a program whose reader is slow, holds up the thread with all its fibers.
 *
 * The way: on these Rubies Heddle's method flushes, and close and reopen flush by it before Ruby does. */
#include "flush.h"

#include <sys/stat.h>

#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "transfer.h"

typedef struct {
    hd_scheduler *scheduler;
    VALUE io;
} flush_call;

static VALUE flush_locked(VALUE pointer)
{
    flush_call *flushing = (void *)pointer;
    int error = hd_io_has_to_flush(flushing->io) ? hd_flush_locked(flushing->scheduler, flushing->io) : 0;
    if (error) rb_syserr_fail(-error, NULL);
    return Qnil;
}

/* Is it a regular file? The page cache takes all bytes that are written to a file. */
static bool is_file(VALUE io)
{
    struct stat status;
    return RTEST(rb_obj_is_kind_of(io, rb_cFile)) && fstat(rb_io_descriptor(io), &status) == 0 &&
           S_ISREG(status.st_mode);
}

void hd_flush_before_ruby_does(VALUE io)
{
    if (!HD_FLUSH_PASSES_BY_IO_WRITE || !RB_TYPE_P(io, T_FILE)) return;
    flush_call flushing = {hd_scheduler_here(), rb_io_get_write_io(io)};
    if (!flushing.scheduler || !hd_io_has_to_flush(flushing.io)) return;
    /* Bytes that a close could not write stay in the buffer of the closed IO. */
    if (hd_io_descriptor(flushing.io) < 0 || is_file(flushing.io)) return;
    rb_mutex_synchronize(hd_io_write_lock(flushing.io), flush_locked, (VALUE)&flushing);
}

void hd_flush(VALUE io)
{
    hd_flush_before_ruby_does(io);
    rb_io_flush(io);
}

/* Replaces IO#flush where HD_FLUSH_PASSES_BY_IO_WRITE. */
static VALUE io_flush(VALUE io)
{
    hd_flush_before_ruby_does(io);
    return rb_funcallv(io, HD_KEPT("flush"), 0, NULL);
}

void hd_init_flush(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "Flush");
    rb_define_method(extension, "flush", io_flush, 0);
}
