/* IO#write of several strings, and with that IO#puts.
 *
 * The problem: to an IO that is not buffered, Ruby makes one writev(2) of several strings, but it asks a scheduler to
 * write one string after the other. A line goes out as two segments, and on a TCP connection the second one, the
 * newline, waits until the peer has acknowledged the first, about 40 ms. To a buffered IO Ruby always writes one string
 * after the other. If it waits in between, until the buffer is flushed, another fiber's line would come between the
 * text and its newline.
 *
 * The way: in a fiber the strings are joined first, and written as one. More than 8 KB go to a socket in one system
 * call without being joined. Ruby writes the strings by itself if nothing can come between.
 *
 * The price: a copy of the strings.
 *
 * Source: guides/patches.md (joined_write). */
#include "fibers/scheduler.h"
#include "fibers/turn.h"
#include "ruby/caught.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "direct_io.h"

#include <ruby/encoding.h>

#include "ruby/ruby_internals.h"

enum {
    COPIED_MAX = 8 * 1024,   /* to copy less is quicker than to name several pieces to the kernel */
    JOINED_MAX = 256 * 1024, /* more takes long enough to send that the number of system calls does not matter */
};

static bool writes_at_once(VALUE io)
{
    return rb_io_mode(io) & (FMODE_SYNC | FMODE_TTY);
}

static long total_size(int count, const VALUE *strings)
{
    long size = 0;
    for (int i = 0; i < count; i++) size += RSTRING_LEN(strings[i]);
    return size;
}

/* Returns one string of all, or nil if their encodings do not mix. */
static VALUE join(VALUE io, int count, const VALUE *strings)
{
    bool bytes = hd_io_writes_bytes(io);
    VALUE joined = rb_str_buf_new(total_size(count, strings));
    rb_enc_copy(joined, strings[0]);
    for (int i = 0; i < count; i++) {
        rb_encoding *encoding = bytes ? rb_ascii8bit_encoding() : rb_enc_compatible(joined, strings[i]);
        if (!encoding) return Qnil;
        rb_str_cat(joined, RSTRING_PTR(strings[i]), RSTRING_LEN(strings[i]));
        rb_enc_associate(joined, encoding);
    }
    return joined;
}

/* May Ruby write them one by one? Then nothing can come between: they fit into the buffer, or Ruby holds the lock of
 * the IO for all of them. */
static bool needs_no_join(VALUE io, long size)
{
    return writes_at_once(io) ? size > JOINED_MAX && !hd_io_has_to_flush(io)
                              : hd_io_writes_bytes(io) && hd_io_has_room(io, (size_t)size);
}

static VALUE write_by_ruby(VALUE io, int argc, const VALUE *argv)
{
    hd_turn_spend_here(io, HD_TURN_ENDS_LATER);
    return rb_funcallv(io, HD_KEPT("write"), argc, argv);
}

/* As needs_no_join says it. Other fibers may run here, and fill the buffer, so this asks once more behind that. */
static bool needs_no_join_in_this_turn(VALUE io, VALUE write_io, long size)
{
    if (!needs_no_join(write_io, size)) return false;
    hd_turn_spend_here(io, HD_TURN_ENDS_LATER);
    return needs_no_join(write_io, size);
}

static VALUE write_one(VALUE io, VALUE string)
{
    VALUE write_io = RB_TYPE_P(io, T_FILE) ? rb_io_get_write_io(io) : io;
    VALUE written = RB_TYPE_P(string, T_STRING) ? hd_write_directly(write_io, 1, &string, RSTRING_LEN(string)) : Qundef;
    return written == Qundef ? write_by_ruby(io, 1, &string) : written;
}

typedef struct {
    VALUE io, joined;
} joined_call;

static VALUE write_the_joined(VALUE pointer)
{
    joined_call *writing = (void *)pointer;
    return write_one(writing->io, writing->joined);
}

static VALUE write_joined(VALUE io, VALUE write_io, int count, VALUE *strings, long size)
{
    bool whole = needs_no_join_in_this_turn(io, write_io, size);
    VALUE joined = whole ? Qnil : join(write_io, count, strings);
    if (NIL_P(joined)) return rb_funcallv(io, HD_KEPT("write"), count, strings);
    if (hd_io_writes_bytes(write_io)) return write_one(io, joined);
    joined_call writing = {io, joined};
    hd_caught caught;
    VALUE written = hd_catch(write_the_joined, (VALUE)&writing, &caught);
    if (!caught.state) return written;
    if (!RTEST(rb_obj_is_kind_of(caught.exception, rb_eEncodingError))) hd_go_on(&caught);
    /* One of the strings cannot be converted, and nothing is written yet. Ruby writes the strings before it, and
     * raises. */
    return write_by_ruby(io, count, strings);
}

static VALUE write_strings(VALUE io, VALUE write_io, int count, VALUE *strings)
{
    long size = total_size(count, strings);
    bool in_pieces = size > COPIED_MAX && hd_io_writes_bytes(write_io);
    VALUE written = in_pieces ? hd_write_directly(write_io, count, strings, size) : Qundef;
    return written == Qundef ? write_joined(io, write_io, count, strings, size) : written;
}

typedef struct {
    VALUE io, write_io;
    int count, made;
    bool buffered;
    const VALUE *given;
    VALUE *strings;
} conversion;

static VALUE make_strings(VALUE pointer)
{
    conversion *all = (void *)pointer;
    for (; all->made < all->count; all->made++) all->strings[all->made] = rb_obj_as_string(all->given[all->made]);
    return Qnil;
}

/* Writes the strings that could be made. If one cannot be made, Ruby has written the strings before it to a buffered
 * IO. */
static VALUE write_those_made(VALUE pointer)
{
    conversion *all = (void *)pointer;
    bool left = all->buffered && all->made > 0 && all->made < all->count && !RTEST(rb_io_closed_p(all->write_io));
    return !left ? Qnil : write_strings(all->io, all->write_io, all->made, all->strings);
}

/* Replaces IO#write. */
static VALUE io_write(int argc, VALUE *argv, VALUE io)
{
    if (argc == 1) return write_one(io, argv[0]);
    if (argc < 2 || !hd_scheduler_here()) return write_by_ruby(io, argc, argv);
    VALUE write_io = RB_TYPE_P(io, T_FILE) ? rb_io_get_write_io(io) : io;
    if (!RB_TYPE_P(write_io, T_FILE) || !RFILE(write_io)->fptr) return write_by_ruby(io, argc, argv);
    VALUE buffer, *strings = ALLOCV_N(VALUE, buffer, argc);
    conversion all = {.io = io, .write_io = write_io, .count = argc, .given = argv, .strings = strings};
    while (all.made < argc && RB_TYPE_P(argv[all.made], T_STRING)) {
        strings[all.made] = argv[all.made];
        all.made++;
    }
    if (all.made < argc) {
        all.buffered = !writes_at_once(write_io);
        rb_ensure(make_strings, (VALUE)&all, write_those_made, (VALUE)&all);
    }
    VALUE written = write_strings(io, write_io, argc, strings);
    ALLOCV_END(buffer);
    return written;
}

void hd_init_joined_write(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "JoinedWrite");
    rb_define_method(extension, "write", io_write, -1);
}
