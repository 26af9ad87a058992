/* IO#read(length) and IO#syswrite in a task.
 *
 * The problem: as with direct_io.c, Ruby makes an IO::Buffer and calls a method of the scheduler for each transfer.
 *
 * The way: read(length) and syswrite make the system call at once if the IO is a socket or a pipe, and read(length)
 * also takes the bytes of a file that the kernel has in memory. If that cannot go on, Ruby's own method reads the
 * remaining bytes, and they are appended.
 *
 * The price: the method must return the same string as Ruby's, with its encoding and its size in memory.
 *
 * Source: guides/patches.md (direct_read). */
#include <string.h>

#include "io/transfer.h"
#include "io/way.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "direct_io.h"

/* Not HD_KEPT, because another patch keeps IO#read as well. */
#define KEPT(name) rb_intern("__heddle_direct_" name)

enum { SHRINKS_FROM = 4096 }; /* From this size on, memory that was not filled is given back, as by Ruby. */

typedef struct {
    hd_transfer call;
    VALUE string;
    long size, done;
    bool for_ruby; /* Ruby must read the remaining bytes */
} exact_read;

/* Begins a read of a file, which is done at once or not at all. Ruby reads a large file in pieces, and transfer.c lets
 * the other fibers run after each. */
static bool begin_file(hd_transfer *call, VALUE io, long size)
{
    if (!RB_TYPE_P(io, T_FILE) || size >= HD_PIECE_SIZE || !hd_io_has_read_nothing(io)) return false;
    if (!(hd_io_mode(io) & FMODE_READABLE)) return false;
    hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler || hd_kind_of(io) != HD_MAYBE_FILE) return false;
    *call = hd_transfer_of(scheduler, HD_READ, io, HD_MAYBE_FILE);
    return true;
}

/* Reads once. Another task may have filled Ruby's buffer meanwhile; and Ruby reads what is left of a file. */
static ssize_t try_read(hd_transfer *call, void *pointer)
{
    const exact_read *reading = pointer;
    bool file = call->kind == HD_MAYBE_FILE;
    char *memory = RSTRING_PTR(reading->string) + reading->done;
    if (call->received) return hd_take_received(call, memory);
    if (call->others_ran && !(file ? hd_io_has_read_nothing(call->io) : hd_io_is_plain(call->io, true)))
        return HD_LEFT_TO_RUBY;
    ssize_t moved = hd_rw_try(HD_READ, call->fd, memory, call->room, HD_NO_OFFSET, &call->kind);
    return moved < 0 && call->kind == HD_MAYBE_FILE ? HD_LEFT_TO_RUBY : moved;
}

/* Reads until there are enough bytes, or until the end. After a short read the stream is empty: the next one waits. */
static VALUE read_exactly(VALUE pointer)
{
    exact_read *reading = (void *)pointer;
    hd_transfer *call = &reading->call;
    bool wait = hd_waits_first(call, (size_t)reading->size);
    for (; reading->done < reading->size; call->amid = true) {
        call->room = (size_t)(reading->size - reading->done);
        call->deadline_ns = 0; /* IO#timeout holds for each wait */
        ssize_t moved = hd_transfer_run(call, wait, try_read, reading);
        if (moved == 0) return Qnil;
        reading->for_ruby = hd_is_left_to_ruby(moved);
        if (reading->for_ruby) return Qnil;
        if (moved < 0) rb_syserr_fail((int)-moved, NULL);
        wait = moved < (ssize_t)call->room && call->kind != HD_MAYBE_FILE;
        reading->done += moved;
    }
    return Qnil;
}

static VALUE read_by_ruby(VALUE io, long size, VALUE string)
{
    VALUE arguments[] = {LONG2FIX(size), string};
    return rb_funcallv(io, KEPT("read"), 2, arguments);
}

static VALUE read_rest_by_ruby(VALUE pointer)
{
    const exact_read *reading = (const void *)pointer;
    return read_by_ruby(reading->call.io, reading->size - reading->done, Qnil);
}

/* Appends the bytes that Ruby's own method reads. They are bytes, whatever the encoding of the string. */
static void read_rest(exact_read *reading)
{
    rb_str_locktmp(reading->string);
    VALUE rest = rb_ensure(read_rest_by_ruby, (VALUE)reading, rb_str_unlocktmp, reading->string);
    if (NIL_P(rest)) return;
    rb_str_modify_expand(reading->string, RSTRING_LEN(rest));
    memcpy(RSTRING_PTR(reading->string) + reading->done, RSTRING_PTR(rest), (size_t)RSTRING_LEN(rest));
    rb_str_set_len(reading->string, reading->done + RSTRING_LEN(rest));
    RB_GC_GUARD(rest);
}

static VALUE read_into_new(exact_read *reading)
{
    reading->string = rb_str_buf_new(reading->size);
    read_exactly((VALUE)reading);
    rb_str_set_len(reading->string, reading->done);
    if (reading->for_ruby) read_rest(reading);
    long length = RSTRING_LEN(reading->string);
    if (reading->size - length > SHRINKS_FROM) rb_str_resize(reading->string, length);
    return reading->string;
}

/* Reads into the caller's string, which nobody may change meanwhile. */
static VALUE read_into(exact_read *reading, VALUE string)
{
    reading->string = string;
    rb_str_modify(string);
    if (RSTRING_LEN(string) < reading->size) rb_str_modify_expand(string, reading->size - RSTRING_LEN(string));
    rb_str_locktmp(string);
    rb_ensure(read_exactly, (VALUE)reading, rb_str_unlocktmp, string);
    if (reading->for_ruby && reading->done == 0) return read_by_ruby(reading->call.io, reading->size, string);
    rb_str_modify(string);
    rb_str_set_len(string, reading->done);
    if (reading->for_ruby) read_rest(reading);
    return string;
}

static VALUE io_read(int argc, VALUE *argv, VALUE io)
{
    exact_read reading = {.string = Qnil};
    VALUE into = argc == 2 ? argv[1] : Qnil;
    bool usual = (argc == 1 || argc == 2) && RB_FIXNUM_P(argv[0]) && FIX2LONG(argv[0]) > 0 &&
                 (NIL_P(into) || (RB_TYPE_P(into, T_STRING) && !RB_OBJ_FROZEN(into)));
    hd_transfer *call = &reading.call;
    if (usual) reading.size = FIX2LONG(argv[0]);
    bool stream = usual && hd_begin_directly(call, HD_READ, io);
    if (!usual || !(stream ? hd_begin_direct_read(call) : begin_file(call, io, reading.size)))
        return rb_funcallv(io, KEPT("read"), argc, argv);
    VALUE string = NIL_P(into) ? read_into_new(&reading) : read_into(&reading, into);
    return !NIL_P(string) && RSTRING_LEN(string) > 0 ? string : Qnil;
}

static VALUE write_rest_by_ruby(VALUE io, VALUE string, long done)
{
    VALUE rest = rb_str_subseq(string, done, RSTRING_LEN(string) - done);
    return LONG2FIX(done + NUM2LONG(rb_funcallv(io, KEPT("syswrite"), 1, &rest)));
}

typedef struct {
    VALUE string;
    long done;
} part_write;

/* Writes what is left. Returns 0 when that is all, or -EAGAIN after a part if write(2) would wait. */
static ssize_t try_write(hd_transfer *call, void *pointer)
{
    part_write *writing = pointer;
    long left = RSTRING_LEN(writing->string) - writing->done;
    ssize_t moved = hd_rw_try(HD_WRITE, call->fd, RSTRING_PTR(writing->string) + writing->done, (size_t)left,
                              HD_NO_OFFSET, &call->kind);
    if (moved < 0) return moved;
    writing->done += moved;
    call->deadline_ns = 0; /* IO#timeout holds for each wait */
    return moved < left && hd_in_blocking_mode(call->fd) ? -EAGAIN : 0;
}

/* Makes one transfer of the bytes that are taken at once. If the descriptor is in blocking mode, it writes all of them,
 * as write(2) does. */
static VALUE io_syswrite(VALUE io, VALUE string)
{
    hd_transfer call;
    VALUE write_io = RB_TYPE_P(io, T_FILE) ? rb_io_get_write_io(io) : io;
    if (!RB_TYPE_P(string, T_STRING) || !hd_begin_directly(&call, HD_WRITE, write_io))
        return rb_funcallv(io, KEPT("syswrite"), 1, &string);
    part_write writing = {rb_str_new_frozen(string), 0};
    ssize_t result = hd_transfer_run(&call, false, try_write, &writing);
    if (hd_is_left_to_ruby(result)) return write_rest_by_ruby(io, writing.string, writing.done);
    if (result < 0) rb_syserr_fail((int)-result, NULL);
    return LONG2FIX(writing.done);
}

void hd_init_direct_read(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "DirectRead");
    rb_define_method(extension, "read", io_read, -1);
    rb_define_method(extension, "syswrite", io_syswrite, 1);
}
