/* What lib/heddle/core_ext/whole_file.rb asks of a file. */
#include "whole_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "init.h"
#include "ruby_internals.h"
#include "cached_path.h"
#include "scheduler.h"

enum { IN_BUFFER_MAX = 1 << 16 }; /* what Ruby may have read ahead */

/* An empty binary String with room for so many bytes (String.new(capacity:) of Ruby 4.0 writes to all of it). */
static VALUE string_for(VALUE self, VALUE size)
{
    (void)self;
    return rb_str_buf_new(NUM2LONG(size));
}

/* How many bytes there are about to be read of a large file that needs no conversion; or nil. It has no effect on the
 * file: File#size and IO#pos would write the buffer, and forget what ungetbyte has put into it.
 *
 * @param length [Object] as it was given to IO#read */
static VALUE large_size(VALUE self, VALUE file, VALUE length)
{
    (void)self;
    struct stat status;
    if (!NIL_P(length) && !(RB_FIXNUM_P(length) && FIX2LONG(length) > HD_LARGE_FILE)) return Qnil;
    int fd = RB_TYPE_P(file, T_FILE) ? hd_io_descriptor(file) : -1;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size <= HD_LARGE_FILE) return Qnil;
    off_t left = status.st_size - lseek(fd, 0, SEEK_CUR) + IN_BUFFER_MAX;
    if (NIL_P(length)) return left > HD_LARGE_FILE && !hd_io_converts(file) ? OFFT2NUM(left) : Qnil;
    return left < 0 ? INT2FIX(0) : left < FIX2LONG(length) ? OFFT2NUM(left) : length;
}

void hd_init_whole_file(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    VALUE whole_file = rb_define_module_under(core_ext, "WholeFile");
    rb_define_const(whole_file, "PIECE_SIZE", INT2FIX(HD_PIECE_SIZE));
    rb_define_singleton_method(whole_file, "string_for", string_for, 1);
    rb_define_singleton_method(whole_file, "large_size", large_size, 2);
}
