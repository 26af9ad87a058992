/* The methods of IO that programs call most, for sockets and pipes in a task.
 *
 * The problem: Ruby makes an IO::Buffer of the string and calls a hook with it, which takes as long as the system call.
 * Of the time of a ping-pong between tasks, 31 % was Ruby's way to the hook and back.
 *
 * The way: the methods here replace Ruby's own, and make the system call at once (io/transfer.h). Before gets, getc and
 * the like, they fill Ruby's own read buffer, so that Ruby finds there all that it looks for. Everything unusual is
 * left to Ruby's own method: files and terminals, data in Ruby's buffers, an encoding to convert from or to, a closed
 * IO, an odd argument.
 *
 * Rejected: to fill the read buffer before read(n), too. Ruby reads at most n bytes then, and a program may rely
 * on it.
 *
 * The price: Ruby's insides (the read buffer, the write lock) are used, which ruby/ finds for each version. Each method
 * must behave as Ruby's own does, down to the errors.
 *
 * Sources: guides/patches.md (direct_io); guides/design.md (Reads in the ring; What Heddle does not do, and why). */
#include "direct_io.h"

#include <string.h>

#include "fibers/pending/pending.h"
#include "fibers/read_ahead.h"
#include "io/transfer.h"
#include "io/way.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static ID id_chomp;

bool hd_begin_directly(hd_transfer *call, hd_direction direction, VALUE io)
{
    /* The most frequent reason comes first. */
    if (!RB_TYPE_P(io, T_FILE) || !hd_io_is_plain(io, direction == HD_READ)) return false;
    if (!(hd_io_mode(io) & (direction == HD_READ ? FMODE_READABLE : FMODE_WRITABLE))) return false;
    hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler) return false;
    *call = hd_transfer_of(scheduler, direction, io, hd_kind_of(io));
    return call->kind == HD_SOCKET || call->kind == HD_STREAM;
}

NORETURN(static void raise_error(ssize_t error));

static void raise_error(ssize_t error)
{
    rb_syserr_fail((int)-error, NULL);
}

/* -- reads --------------------------------------------------------------------------------------------------- */

typedef struct {
    hd_transfer *call;
    char *memory;  /* destination; NULL: into the string */
    VALUE string;
    ssize_t moved; /* 0: the end */
} direct_read;

/* Returns the room in Ruby's empty read buffer, as far as it is used. */
static size_t room_of_buffer(VALUE io)
{
    size_t room = hd_io_read_buffer_size(io);
    return room < HD_READ_MEMORY_SIZE ? room : HD_READ_MEMORY_SIZE;
}

NORETURN(static void raise_read_error(const direct_read *reading, ssize_t error));

/* Raises the error of a read. The message names io_fillbuf where Ruby's would, when it fills its buffer. */
static void raise_read_error(const direct_read *reading, ssize_t error)
{
    if (!reading->call->reads_ahead) raise_error(error);
    VALUE where[] = {rb_sprintf("fd:%d ", reading->call->fd), INT2FIX(-error), rb_str_new_cstr("io_fillbuf")};
    rb_exc_raise(rb_class_new_instance(3, where, rb_eSystemCallError));
}

/* May other fibers have filled Ruby's buffer meanwhile? After a close_read the read must find the end. */
static bool is_changed(const hd_transfer *call)
{
    return call->others_ran && !hd_io_is_plain(call->io, true);
}

/* Bytes that are returned at once need the IO no longer, but Ruby must report that it was closed if they are for its
 * buffer. */
ssize_t hd_take_received(const hd_transfer *call, char *memory)
{
    const char *received = call->scheduler->read_memory;
    if (call->moved < 0) return call->moved;
    if (hd_io_descriptor(call->io) < 0 ? call->reads_ahead : is_changed(call)) {
        hd_io_put_back(call->io, received, (size_t)call->moved);
        return HD_LEFT_TO_RUBY;
    }
    if (memory != received) memcpy(memory, received, (size_t)call->moved);
    return call->moved;
}

static ssize_t try_read(hd_transfer *call, void *pointer)
{
    const direct_read *reading = pointer;
    char *memory = reading->memory ? reading->memory : RSTRING_PTR(reading->string);
    if (call->received) return hd_take_received(call, memory);
    if (is_changed(call)) return HD_LEFT_TO_RUBY;
    if (call->reads_ahead) call->room = room_of_buffer(call->io);
    return hd_transfer_try(call, memory, call->room);
}

/* Reads once, when there are bytes. Returns Qtrue, or Qfalse if Ruby must read. */
static VALUE read_once(VALUE pointer)
{
    direct_read *reading = (void *)pointer;
    hd_transfer *call = reading->call;
    reading->moved = hd_transfer_run(call, hd_waits_first(call, call->room), try_read, reading);
    if (hd_is_left_to_ruby(reading->moved)) return Qfalse;
    if (reading->moved < 0) raise_read_error(reading, reading->moved);
    return Qtrue;
}

bool hd_begin_direct_read(hd_transfer *call)
{
    hd_transfer_meets_reader(call);
    hd_pending_raise_overdue(call->scheduler);
    return !is_changed(call);
}

/* Returns a new string of at most size bytes, nil at the end, or Qundef if Ruby must read. */
static VALUE read_new(hd_transfer *call, long size)
{
    direct_read reading = {.call = call, .string = Qnil};
    call->room = (size_t)size;
    if (size > HD_READ_MEMORY_SIZE)
        reading.string = rb_str_new(NULL, size);
    else
        reading.memory = hd_read_memory(call->scheduler);
    if (!RTEST(read_once((VALUE)&reading))) return Qundef;
    if (reading.moved == 0) return Qnil;
    if (reading.memory) return rb_str_new(reading.memory, reading.moved);
    rb_str_resize(reading.string, reading.moved);
    return reading.string;
}

/* Reads as read_new does, but into the string of the caller, which nobody may change meanwhile. */
static VALUE read_into(hd_transfer *call, long size, VALUE string)
{
    rb_str_modify(string);
    if (RSTRING_LEN(string) < size) rb_str_modify_expand(string, size - RSTRING_LEN(string));
    direct_read reading = {.call = call, .string = string};
    call->room = (size_t)size;
    rb_str_locktmp(string);
    if (!RTEST(rb_ensure(read_once, (VALUE)&reading, rb_str_unlocktmp, string))) return Qundef;
    rb_str_modify(string);
    rb_str_set_len(string, reading.moved);
    return reading.moved == 0 ? Qnil : string;
}

/* Reads for readpartial and sysread. Returns Qundef if Ruby must read. */
static VALUE read_directly(int argc, const VALUE *argv, VALUE io)
{
    hd_transfer call;
    bool into = argc == 2 && !NIL_P(argv[1]);
    if (argc < 1 || argc > 2 || !FIXNUM_P(argv[0]) || FIX2LONG(argv[0]) <= 0) return Qundef;
    if (into && (!RB_TYPE_P(argv[1], T_STRING) || RB_OBJ_FROZEN(argv[1]))) return Qundef;
    if (!hd_begin_directly(&call, HD_READ, io) || !hd_begin_direct_read(&call)) return Qundef;
    VALUE string = into ? read_into(&call, FIX2LONG(argv[0]), argv[1]) : read_new(&call, FIX2LONG(argv[0]));
    if (NIL_P(string)) rb_eof_error();
    return string;
}

static VALUE io_readpartial(int argc, VALUE *argv, VALUE io)
{
    VALUE string = read_directly(argc, argv, io);
    return string == Qundef ? rb_funcallv(io, HD_KEPT("readpartial"), argc, argv) : string;
}

static VALUE io_sysread(int argc, VALUE *argv, VALUE io)
{
    VALUE string = read_directly(argc, argv, io);
    if (string == Qundef && hd_io_has_put_back(io)) return rb_funcallv(io, HD_KEPT("readpartial"), argc, argv);
    return string == Qundef ? rb_funcallv(io, HD_KEPT("sysread"), argc, argv) : string;
}

/* The result of filling Ruby's read buffer for a method that is about to look there. */
typedef enum {
    LEFT_TO_RUBY, /* the buffer is filled, or Ruby must fill it */
    AT_END, /* no bytes; to ask once more would take the next datagram, or wait for it */
    CLOSED_FOR_READING /* by a close_read that came while the buffer was filled */
} finding;

/* Fills Ruby's empty read buffer. */
static finding fill(VALUE io)
{
    hd_transfer call;
    /* Bytes that must be converted are read by Ruby into a larger buffer. */
    if (!hd_begin_directly(&call, HD_READ, io) || hd_io_converts(io)) return LEFT_TO_RUBY;
    direct_read reading = {.call = &call, .memory = hd_read_memory(call.scheduler)};
    call.reads_ahead = true;
    call.room = room_of_buffer(io);
    if (hd_begin_direct_read(&call) && RTEST(read_once((VALUE)&reading))) {
        if (reading.moved == 0) return AT_END;
        hd_io_fill(io, reading.memory, (size_t)reading.moved);
        hd_after_read_ahead(call.scheduler, io, call.fd);
    }
    bool closed_for_reading = hd_io_descriptor(io) >= 0 && !(hd_io_mode(io) & FMODE_READABLE);
    return closed_for_reading ? CLOSED_FOR_READING : LEFT_TO_RUBY;
}

typedef struct {
    VALUE io;
    ID method;
    int argc;
    const VALUE *argv;
} kept_call;

static VALUE call_kept(VALUE pointer)
{
    const kept_call *call = (const void *)pointer;
    return rb_funcallv_kw(call->io, call->method, call->argc, call->argv, RB_PASS_CALLED_KEYWORDS);
}

static VALUE end_reading(VALUE io)
{
    hd_io_set_readable(io, false);
    return Qnil;
}

/* Fills the read buffer and returns the result of Ruby's method, or Qundef at the end of the stream. Ruby's method
 * checks only at its beginning whether the IO is open for reading. For the program it has begun before a close_read
 * that came while the buffer was filled, so the IO is made readable for this call. */
static VALUE fill_and_call(VALUE io, ID method, int argc, const VALUE *argv)
{
    kept_call call = {io, method, argc, argv};
    finding found = fill(io);
    if (found == AT_END) return Qundef;
    if (found == LEFT_TO_RUBY) return call_kept((VALUE)&call);
    hd_io_set_readable(io, true);
    return rb_ensure(call_kept, (VALUE)&call, end_reading, io);
}

static VALUE nil_at_end(VALUE found)
{
    return found == Qundef ? Qnil : found;
}

static bool is_separator(VALUE io, VALUE argument)
{
    if (NIL_P(argument)) return true;
    return RB_TYPE_P(argument, T_STRING) && rb_enc_str_asciionly_p(argument) && hd_io_reads_ascii(io);
}

static bool is_limit(VALUE argument)
{
    return RB_FIXNUM_P(argument) && FIX2LONG(argument) > 0;
}

static bool are_options(VALUE argument)
{
    return RHASH_SIZE(argument) == 1 && rb_hash_lookup2(argument, ID2SYM(id_chomp), Qundef) != Qundef;
}

/* Does gets read anything with these arguments? With a limit of 0 it returns at once, and it refuses a wrong one. */
static bool has_line_arguments(int argc, const VALUE *argv, VALUE io)
{
    if (RB_UNLIKELY(rb_rs != rb_default_rs)) return false;
    if (argc == 0) return true;
    if (rb_keyword_given_p() && !are_options(argv[--argc])) return false;
    if (argc == 1) return is_limit(argv[0]) || is_separator(io, argv[0]);
    return argc == 0 || (argc == 2 && is_separator(io, argv[0]) && is_limit(argv[1]));
}

/* Reads a line, and sets $_ as Ruby's method does. */
static VALUE read_line(VALUE io, ID method, int argc, const VALUE *argv)
{
    if (!has_line_arguments(argc, argv, io)) return rb_funcallv_kw(io, method, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE line = fill_and_call(io, method, argc, argv);
    if (line == Qundef) rb_lastline_set(Qnil);
    return line;
}

static VALUE io_gets(int argc, VALUE *argv, VALUE io)
{
    return nil_at_end(read_line(io, HD_KEPT("gets"), argc, argv));
}

static VALUE io_readline(int argc, VALUE *argv, VALUE io)
{
    VALUE line = read_line(io, HD_KEPT("readline"), argc, argv);
    if (line == Qundef) rb_eof_error();
    return line;
}

static VALUE io_getc(VALUE io)
{
    return nil_at_end(fill_and_call(io, HD_KEPT("getc"), 0, NULL));
}

static VALUE io_getbyte(VALUE io)
{
    return nil_at_end(fill_and_call(io, HD_KEPT("getbyte"), 0, NULL));
}

/* -- writes -------------------------------------------------------------------------------------------------- */

static bool in_place; /* the patch is not switched off */

typedef struct {
    hd_transfer *call;
    VALUE lock;
    int count, at; /* number of strings, and the index of the current one */
    VALUE *strings;
    long done; /* bytes written of the current string */
    long left; /* bytes left of all strings */
} direct_write;

static long left_of_one(const direct_write *writing)
{
    return RSTRING_LEN(writing->strings[writing->at]) - writing->done;
}

/* Notes that more bytes have been written. */
static void advance(direct_write *writing, ssize_t moved)
{
    writing->left -= moved;
    for (; writing->at < writing->count && moved >= left_of_one(writing); writing->at++, writing->done = 0)
        moved -= left_of_one(writing);
    writing->done += moved;
}

/* Writes all that is left with one system call, because on some sockets each call sends one message. Only a socket has
 * a system call for several strings that does not wait and raises no SIGPIPE. */
static ssize_t try_rest(const direct_write *writing)
{
    int count = writing->count - writing->at;
    const VALUE *strings = writing->strings + writing->at;
    char *first = RSTRING_PTR(strings[0]) + writing->done;
    if (count == 1) return hd_transfer_try(writing->call, first, (size_t)writing->left);
    struct iovec parts[HD_PARTS_MAX] = {{first, (size_t)left_of_one(writing)}};
    for (int i = 1; i < count; i++) parts[i] = (struct iovec){RSTRING_PTR(strings[i]), (size_t)RSTRING_LEN(strings[i])};
    return hd_send_parts(writing->call->fd, parts, count);
}

/* Writes what is left. Returns 0 when that is all, or -EAGAIN after a part. */
static ssize_t try_all(hd_transfer *call, void *pointer)
{
    ssize_t moved = try_rest(pointer);
    if (moved < 0) return moved;
    advance(pointer, moved);
    return ((direct_write *)pointer)->left > 0 ? -EAGAIN : 0;
}

/* Writes the bytes that are left after a part. It stops at bytes that Ruby must write. */
static VALUE write_rest(VALUE pointer)
{
    direct_write *writing = (void *)pointer;
    ssize_t result = writing->left > 0 ? hd_transfer_run(writing->call, true, try_all, writing) : 0;
    if (result < 0 && !hd_is_left_to_ruby(result)) raise_error(result);
    return Qnil;
}

/* Writes the whole string, which goes out with those of other fibers. The string may be changed meanwhile, so the bytes
 * that are left after a part come from a copy. It is on the stack, because a part is rare, and an object is dear. */
static VALUE write_with_others(VALUE pointer)
{
    direct_write *writing = (void *)pointer;
    char copy[HD_SHARED_WRITE_MAX];
    size_t size = (size_t)writing->left;
    memcpy(copy, RSTRING_PTR(writing->strings[0]), size);
    ssize_t moved = hd_transfer_send(writing->call, copy, size);
    if (moved < 0 && moved != -EAGAIN) raise_error(moved);
    if (moved < (ssize_t)size) writing->strings[0] = rb_str_new(copy, (long)size);
    if (moved > 0) {
        writing->done = moved;
        writing->left -= moved;
    }
    return write_rest(pointer);
}

static VALUE release(VALUE lock)
{
    return rb_mutex_unlock(lock);
}

/* Returns the bytes that are left for Ruby to write, as one string: Ruby would write several one after the other. */
static VALUE rest_of(const direct_write *writing)
{
    VALUE rest = rb_str_subseq(writing->strings[writing->at], writing->done, left_of_one(writing));
    for (int i = writing->at + 1; i < writing->count; i++)
        rb_str_cat(rest, RSTRING_PTR(writing->strings[i]), RSTRING_LEN(writing->strings[i]));
    return rest;
}

/* Writes with the lock of the IO, so that no other string comes in between. Ruby makes that lock when it writes to the
 * IO for the first time; until then Ruby writes the bytes that are left. */
static VALUE write_locked(VALUE (*write)(VALUE writing), direct_write *writing, long size)
{
    if (!NIL_P(writing->lock)) {
        rb_mutex_lock(writing->lock); /* it is free: no other fiber has run */
        rb_ensure(write, (VALUE)writing, release, writing->lock);
    }
    if (writing->left == 0) return LONG2FIX(size);
    VALUE rest = rest_of(writing);
    rb_funcallv(writing->call->io, HD_KEPT("write"), 1, &rest);
    return LONG2FIX(size);
}

VALUE hd_write_directly(VALUE write_io, int count, VALUE *strings, long size)
{
    hd_transfer call;
    if (!in_place || !hd_begin_directly(&call, HD_WRITE, write_io)) return Qundef;
    if (count > 1 && (count > HD_PARTS_MAX || call.kind != HD_SOCKET)) return Qundef;
    if (hd_transfer_spend_turn(&call) && !hd_begin_directly(&call, HD_WRITE, write_io)) return Qundef;
    VALUE lock = hd_io_write_lock(write_io);
    if (size == 0 || (!NIL_P(lock) && RTEST(rb_mutex_locked_p(lock)))) return Qundef;
    direct_write writing = {.call = &call, .lock = lock, .count = count, .strings = strings, .left = size};
    if (count == 1 && hd_write_shares_call(&call, (size_t)size))
        return write_locked(write_with_others, &writing, size);
    ssize_t moved = try_rest(&writing);
    if (moved == size) return LONG2FIX(size);
    if (moved == 0 || hd_is_left_to_ruby(moved)) return Qundef;
    if (moved < 0 && moved != -EAGAIN) raise_error(moved);
    if (moved > 0) advance(&writing, moved);
    for (int i = writing.at; i < count; i++) strings[i] = rb_str_new_frozen(strings[i]);
    return write_locked(write_rest, &writing, size);
}

static VALUE put_in_place(VALUE self)
{
    in_place = true;
    return self;
}

void hd_init_direct_io(void)
{
    id_chomp = rb_intern("chomp");
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "DirectIO");
    rb_define_singleton_method(extension, "put_in_place", put_in_place, 0);
    rb_define_method(extension, "readpartial", io_readpartial, -1);
    rb_define_method(extension, "sysread", io_sysread, -1);
    rb_define_method(extension, "gets", io_gets, -1);
    rb_define_method(extension, "readline", io_readline, -1);
    rb_define_method(extension, "getc", io_getc, 0);
    rb_define_method(extension, "getbyte", io_getbyte, 0);
}
