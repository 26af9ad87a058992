/* IO#write of several strings, and with that IO#puts, to an IO that is not buffered. Ruby makes one writev(2) of it,
 * but asks a scheduler to write one string after the other: a line goes out as two segments, and on a TCP connection
 * the second one, the newline, waits until the peer has acknowledged the first, about 40 ms. The method is prepended:
 * in a fiber the strings are joined first. */
#include "joined_write.h"

#include <ruby/encoding.h>

enum { JOINED_MAX = 256 * 1024 }; /* more takes long enough to send */

static bool writes_at_once(VALUE io)
{
    return RB_TYPE_P(io, T_FILE) && RFILE(io)->fptr && rb_io_mode(io) & (FMODE_SYNC | FMODE_TTY);
}

/* One string of all, or nil if they cannot be joined: too long, or with encodings that do not mix. */
static VALUE join(int count, const VALUE *strings)
{
    long size = 0;
    for (int i = 0; i < count; i++) size += RSTRING_LEN(strings[i]);
    if (size > JOINED_MAX) return Qnil;
    VALUE joined = rb_str_buf_new(size);
    rb_enc_copy(joined, strings[0]);
    for (int i = 0; i < count; i++) {
        rb_encoding *encoding = rb_enc_compatible(joined, strings[i]);
        if (!encoding) return Qnil;
        rb_str_cat(joined, RSTRING_PTR(strings[i]), RSTRING_LEN(strings[i]));
        rb_enc_associate(joined, encoding);
    }
    return joined;
}

/* Prepended to IO#write; without a Heddle scheduler it is plain super. */
static VALUE io_write(int argc, VALUE *argv, VALUE io)
{
    if (argc < 2 || NIL_P(rb_fiber_scheduler_current()) || !hd_scheduler_of_thread() || !writes_at_once(io))
        return rb_call_super(argc, argv);
    VALUE buffer, *strings = ALLOCV_N(VALUE, buffer, argc);
    for (int i = 0; i < argc; i++) strings[i] = rb_obj_as_string(argv[i]);
    VALUE joined = join(argc, strings);
    VALUE written = NIL_P(joined) ? rb_call_super(argc, strings) : rb_call_super(1, &joined);
    ALLOCV_END(buffer);
    return written;
}

void hd_init_joined_write(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "JoinedWrite");
    rb_define_method(extension, "write", io_write, -1);
}
