/* The hooks io_wait, io_read, io_write, io_pread and io_pwrite. They unpack the arguments; transfer.c does everything
 * else. io_read and io_write wait by themselves, and do not return EAGAIN: all their callers want that except
 * IO#read_nonblock (see ruby_internals.h). So Ruby calls one hook for a blocking read in place of two, and sysread and
 * syswrite work. */
#include <errno.h>

#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/turn.h"
#include "io/shared_io.h"
#include "io/transfer.h"
#include "io/way.h"
#include "ruby/deadline.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

/* -- io_wait ------------------------------------------------------------------------------------------------- */

/* Looks whether a wait for a write is over already. Mostly it is the wait of a connect, which Ruby also lets wait for a
 * read. On the same machine a connection is there as soon as it is asked for. A cheap system call saves two switches
 * then, and lets the request follow at once. If an exception is pending, it returns 0, and the wait raises it. Returns
 * the ready events, or 0. */
static int writable_at_once(hd_scheduler *scheduler, VALUE io, int events)
{
    if (!(events & POLLOUT) || scheduler->reactor.shares || hd_scheduler_foreign(scheduler)) return 0;
    hd_turn_spend(scheduler, io, HD_TURN_ENDS);
    int ready = scheduler->pending.due ? 0 : hd_poll_once(rb_io_descriptor(io), events, 0);
    return ready > 0 ? ready : 0;
}

/* Waits until one of the events is ready.
 *
 * @overload io_wait(io, events, timeout)
 *   @param io [IO]
 *   @param events [Integer] IO::READABLE, IO::PRIORITY, IO::WRITABLE
 *   @param timeout [Numeric, nil] seconds; nil: IO#timeout
 *   @return [Integer, false] the ready events, or false when the timeout has passed
 *   @raise [IO::TimeoutError] when IO#timeout has passed and nobody else would raise it (Ruby 3.3) */
static VALUE hook_io_wait(VALUE self, VALUE io, VALUE events_value, VALUE timeout)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int fd = rb_io_descriptor(io);
    int events = NUM2INT(events_value);
    bool own_timeout = NIL_P(timeout); /* Ruby does not look at IO#timeout before it calls */
    if (own_timeout) timeout = hd_io_timeout(io);
    int ready;
    if (timeout == INT2FIX(0) && !own_timeout) {
        if (hd_turn_spend(scheduler, io, HD_TURN_ENDS)) fd = rb_io_descriptor(io);
        ready = hd_poll_once(fd, events, 0);
        if (ready < 0 && ready != -EINTR) rb_syserr_fail(-ready, "heddle: cannot poll the IO");
        if (ready < 0) ready = 0;
        /* A fiber that asks again and again until there are bytes waits, too: for another fiber, maybe. */
        if (!ready && !hd_scheduler_foreign(scheduler)) hd_yield(scheduler);
    }
    else {
        int64_t deadline_ns = hd_deadline_from(timeout);
        if (events & POLLIN) hd_before_read(scheduler, io, fd);
        ready = writable_at_once(scheduler, io, events);
        if (!ready) ready = hd_wait_io(scheduler, io, rb_io_descriptor(io), events, deadline_ns);
    }
    if (!ready && own_timeout && HD_CALLERS_OF_IO_WAIT_FORGET_TIMEOUT && !hd_called_by_wait())
        rb_raise(rb_const_get(rb_cIO, rb_intern("TimeoutError")), "Blocking operation timed out!");
    return ready ? INT2FIX(ready) : Qfalse;
}

/* -- transfers ----------------------------------------------------------------------------------------------- */

/* Finds errors in the arguments, as Ruby and the kernel report them. Raises an exception, or returns -errno; else 0. */
static int error_in_arguments(hd_transfer *call, bool positioned)
{
    size_t size;
    hd_transfer_bytes(call, &size);
    if (call->length > size) hd_raise_out_of_bounds();
    return positioned && call->from < 0 ? -EINVAL : 0;
}

static VALUE start_io(VALUE self, hd_direction direction, VALUE io, VALUE buffer, VALUE from, VALUE length,
                            VALUE offset)
{
    if (HD_OFFSET_BEFORE_LENGTH) {
        VALUE swapped = length;
        length = offset;
        offset = swapped;
    }
    hd_transfer call = {
        .scheduler = hd_scheduler_ready(self),
        .direction = direction,
        .io = io,
        .buffer = buffer,
        .length = NIL_P(length) ? 0 : NUM2SIZET(length),
        .offset = NIL_P(offset) ? 0 : NUM2SIZET(offset),
        .from = NIL_P(from) ? HD_NO_OFFSET : NUM2OFFT(from),
        .fd = rb_io_descriptor(io),
        .kind = NIL_P(from) ? hd_kind_of(io) : HD_MAYBE_FILE, /* a socket gets ESPIPE from pread and pwrite */
    };
    if (call.length || call.offset || !NIL_P(from)) {
        int error = error_in_arguments(&call, !NIL_P(from));
        if (error) return INT2FIX(error);
    }
    bool flushes = hd_is_flush(&call);
    if (direction == HD_READ && call.kind != HD_MAYBE_FILE) hd_transfer_meets_reader(&call);
    return flushes ? hd_flush_all(&call) : hd_move_all(&call);
}

/* Reads into a buffer.
 *
 * @overload io_read(io, buffer, length, offset = 0)
 *   @param io [IO]
 *   @param buffer [IO::Buffer]
 *   @param length [Integer] the least number of bytes, 0 = one read (up to Ruby 4.0)
 *   @param offset [Integer] where in the buffer (from Ruby 4.1 on it comes before the length)
 *   @return [Integer] bytes read (0: end of file), or -errno
 *   @raise [IO::TimeoutError] when IO#timeout has passed */
static VALUE hook_io_read(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 3, 4);
    return start_io(self, HD_READ, argv[0], argv[1], Qnil, argv[2], argc > 3 ? argv[3] : Qnil);
}

/* Writes from a buffer, with the arguments of io_read.
 *
 * @overload io_write(io, buffer, length, offset = 0)
 *   @param io [IO]
 *   @param buffer [IO::Buffer]
 *   @param length [Integer] the least number of bytes
 *   @param offset [Integer] where in the buffer
 *   @return [Integer] bytes written, or -errno */
static VALUE hook_io_write(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 3, 4);
    return start_io(self, HD_WRITE, argv[0], argv[1], Qnil, argv[2], argc > 3 ? argv[3] : Qnil);
}

/* Reads as io_read does, but from a position in the file. The IO's own position does not move.
 *
 * @overload io_pread(io, buffer, from, length, offset = 0)
 *   @param io [IO]
 *   @param buffer [IO::Buffer]
 *   @param from [Integer] the position
 *   @param length [Integer] the least number of bytes
 *   @param offset [Integer] where in the buffer
 *   @return [Integer] bytes read (0: end of file), or -errno */
static VALUE hook_io_pread(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 4, 5);
    return start_io(self, HD_READ, argv[0], argv[1], argv[2], argv[3], argc > 4 ? argv[4] : Qnil);
}

/* Writes as io_write does, but to a position in the file. The IO's own position does not move.
 *
 * @overload io_pwrite(io, buffer, from, length, offset = 0)
 *   @param io [IO]
 *   @param buffer [IO::Buffer]
 *   @param from [Integer] the position
 *   @param length [Integer] the least number of bytes
 *   @param offset [Integer] where in the buffer
 *   @return [Integer] bytes written, or -errno */
static VALUE hook_io_pwrite(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 4, 5);
    return start_io(self, HD_WRITE, argv[0], argv[1], argv[2], argv[3], argc > 4 ? argv[4] : Qnil);
}

void hd_init_hooks_io(void)
{
    rb_define_method(hd_cScheduler, "io_wait", hook_io_wait, 3);
    rb_define_method(hd_cScheduler, "io_read", hook_io_read, -1);
    rb_define_method(hd_cScheduler, "io_write", hook_io_write, -1);
    rb_define_method(hd_cScheduler, "io_pread", hook_io_pread, -1);
    rb_define_method(hd_cScheduler, "io_pwrite", hook_io_pwrite, -1);
}
