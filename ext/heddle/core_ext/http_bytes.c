/* The part of heddle/accelerate/net_http that is in C. It finds all fields of the header of an HTTP response in one go,
 * and reads its body without a buffer. Everything unusual is left to Net::HTTP. */
#include <sys/socket.h>

#include <errno.h>
#include <ruby/encoding.h>

#include "fibers/turn.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

/* -- the header ---------------------------------------------------------------------------------------------- */

/* A longer header is left to Net::HTTP, which may refuse it. */
enum { HEADER_SIZE = 64 * 1024 };

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Returns the end of the line without the whitespace there, or NULL if the line has other bytes than text. */
static const char *end_of_text(const char *line, const char *end)
{
    if (end > line && end[-1] == '\r') end--;
    for (const char *byte = line; byte < end; byte++) {
        if ((unsigned char)*byte < ' ' && *byte != '\t') return NULL;
    }
    while (end > line && is_space(end[-1])) end--;
    return end;
}

/* Adds the name and the value of a field. */
static bool add_field(VALUE fields, const char *line, const char *end)
{
    const char *colon = is_space(*line) ? NULL : memchr(line, ':', (size_t)(end - line));
    if (!colon) return false;
    const char *name_end = colon, *value = colon + 1;
    while (name_end > line && is_space(name_end[-1])) name_end--;
    while (value < end && is_space(*value)) value++;
    rb_ary_push(fields, rb_str_new(line, name_end - line));
    rb_ary_push(fields, rb_str_new(value, end - value));
    return name_end > line;
}

/* fields(buffer, offset): returns an Array of name, value, name, value ... and the offset behind the header's end.
 * Returns nil if the header is unusual, or does not end in the buffer. */
static VALUE fields_of(VALUE self, VALUE buffer, VALUE offset)
{
    long start = NUM2LONG(offset);
    StringValue(buffer);
    if (!RB_ENCODING_IS_ASCII8BIT(buffer) || start < 0 || start > RSTRING_LEN(buffer)) return Qnil;
    VALUE fields = rb_ary_new_capa(24);
    const char *bytes = RSTRING_PTR(buffer), *line = bytes + start, *limit = bytes + RSTRING_LEN(buffer);
    const char *newline;
    for (; (newline = memchr(line, '\n', (size_t)(limit - line))); line = newline + 1) {
        const char *end = end_of_text(line, newline);
        if (!end || newline - bytes - start > HEADER_SIZE || (end == line && is_space(*line))) break;
        if (end == line) {
            rb_ary_push(fields, LONG2FIX(newline + 1 - bytes));
            RB_GC_GUARD(buffer);
            return fields;
        }
        if (!add_field(fields, line, end)) break;
    }
    RB_GC_GUARD(buffer);
    return Qnil;
}

/* -- the body ------------------------------------------------------------------------------------------------ */

/* The least and the most room that a string gets at a time; between them it gets as much as it has. The length that a
 * header promises is not believed before the bytes come. */
enum { ROOM_AT_FIRST = 256 * 1024, ROOM_AT_MOST = 4 * 1024 * 1024 };

static VALUE wait_readable;

static long room_for(VALUE string, long wanted)
{
    long room = RSTRING_LEN(string);
    if (room < ROOM_AT_FIRST) room = ROOM_AT_FIRST;
    if (room > ROOM_AT_MOST) room = ROOM_AT_MOST;
    return wanted < room ? wanted : room;
}

/* receive(socket, string, most): appends at most this number of bytes to the string. Returns their number, nil at the
 * end, :wait_readable if no bytes are there yet, or false if Ruby's read_nonblock must read. */
static VALUE receive(VALUE self, VALUE socket, VALUE string, VALUE most)
{
    hd_turn_spend_here(socket, HD_TURN_ENDS);
    if (!RB_TYPE_P(socket, T_FILE) || !hd_io_is_plain(socket, true)) return Qfalse;
    if (!(hd_io_mode(socket) & FMODE_READABLE)) return Qfalse;
    long size = room_for(string, FIXNUM_P(most) ? FIX2LONG(most) : ROOM_AT_MOST), length = RSTRING_LEN(string);
    rb_str_modify_expand(string, size);
    ssize_t got;
    do {
        got = recv(rb_io_descriptor(socket), RSTRING_PTR(string) + length, (size_t)size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable;
    if (got < 0) rb_sys_fail(NULL);
    rb_str_set_len(string, length + got);
    return got == 0 ? Qnil : LONG2NUM(got);
}

void hd_init_http_bytes(void)
{
    /* Document-module: Heddle::HTTPBytes
     *
     * The bytes of HTTP responses.
     *
     * @private */
    VALUE http_bytes = rb_define_module_under(hd_mHeddle, "HTTPBytes");
    rb_funcall(hd_mHeddle, rb_intern("private_constant"), 1, ID2SYM(rb_intern("HTTPBytes")));
    wait_readable = ID2SYM(rb_intern("wait_readable"));
    rb_define_singleton_method(http_bytes, "fields", fields_of, 2);
    rb_define_singleton_method(http_bytes, "receive", receive, 3);
}
