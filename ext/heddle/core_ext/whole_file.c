/* IO.read and IO.binread in a task, and the checks of a file that lib/heddle/core_ext/whole_file.rb needs. */
#include <sys/stat.h>
#include <unistd.h>

#include <ruby/encoding.h>

#include "io/transfer.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "cached_path.h"

enum { IN_BUFFER_MAX = 1 << 16 }; /* the most that Ruby may have read ahead */

/* Returns an empty binary String with this much room. String.new(capacity:) of Ruby 4.0 writes to all of it. */
static VALUE string_for(VALUE self, VALUE size)
{
    return rb_str_buf_new(NUM2LONG(size));
}

/* Returns how many bytes would be read now of a large file that needs no conversion; or nil. It has no effect on the
 * file. File#size and IO#pos would write the buffer, and forget the bytes that ungetbyte has put into it.
 *
 * @param length [Object] as it was given to IO#read */
static VALUE large_size(VALUE self, VALUE file, VALUE length)
{
    struct stat status;
    if (!NIL_P(length) && !(RB_FIXNUM_P(length) && FIX2LONG(length) > HD_LARGE_FILE)) return Qnil;
    int fd = RB_TYPE_P(file, T_FILE) ? hd_io_descriptor(file) : -1;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size <= HD_LARGE_FILE) return Qnil;
    off_t left = status.st_size - lseek(fd, 0, SEEK_CUR) + IN_BUFFER_MAX;
    if (NIL_P(length)) return left > HD_LARGE_FILE && !hd_io_converts(file) ? OFFT2NUM(left) : Qnil;
    return left < 0 ? INT2FIX(0) : left < FIX2LONG(length) ? OFFT2NUM(left) : length;
}

/* Returns the encoding of text that Ruby reads, or NULL if Ruby would convert it to another one. */
static rb_encoding *encoding_of_text(void)
{
    rb_encoding *external = rb_default_external_encoding(), *internal = rb_default_internal_encoding();
    return !internal || internal == external ? external : NULL;
}

/* Reads the file of a path alone: content that the kernel has in memory is read at once, without a File object. All
 * else goes to the methods of this name in whole_file.rb, and to Ruby's own, also if the scheduler is not Heddle's. */
static VALUE read_whole(VALUE io_class, const char *name, ID kept, int argc, VALUE *argv, rb_encoding *encoding)
{
    hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler || argc == 0) return rb_funcallv_kw(io_class, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE content = argc == 1 && encoding ? hd_cached_content(scheduler, argv[0]) : Qnil;
    if (!NIL_P(content)) return rb_enc_associate(content, encoding);
    bool keywords = rb_keyword_given_p();
    VALUE arguments = rb_ary_new_from_values(argc, argv);
    rb_ary_unshift(arguments, io_class);
    VALUE whole_file = rb_const_get(rb_const_get(hd_mHeddle, rb_intern("CoreExt")), rb_intern("WholeFile"));
    VALUE result = rb_funcallv_kw(whole_file, rb_intern(name), argc + 1, RARRAY_CONST_PTR(arguments), keywords);
    RB_GC_GUARD(arguments);
    return result;
}

static VALUE io_read(int argc, VALUE *argv, VALUE io_class)
{
    return read_whole(io_class, "read", HD_KEPT("read"), argc, argv, encoding_of_text());
}

static VALUE io_binread(int argc, VALUE *argv, VALUE io_class)
{
    rb_check_arity(argc, 1, 3);
    return read_whole(io_class, "binread", HD_KEPT("binread"), argc, argv, rb_ascii8bit_encoding());
}

void hd_init_whole_file(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    VALUE whole_file = rb_define_module_under(core_ext, "WholeFile");
    rb_define_const(whole_file, "PIECE_SIZE", INT2FIX(HD_PIECE_SIZE));
    rb_define_singleton_method(whole_file, "string_for", string_for, 1);
    rb_define_singleton_method(whole_file, "large_size", large_size, 2);
    VALUE by_path = rb_define_module_under(whole_file, "ByPath");
    rb_define_method(by_path, "read", io_read, -1);
    rb_define_method(by_path, "binread", io_binread, -1);
}
