/* Replaces IO#pwrite. Ruby 3.3 and 3.4 call the io_pwrite hook, and allocate objects for it, without the GVL, which
 * corrupts the memory under any scheduler. In a fiber this method calls the hook, after the same checks in the same
 * order. */
#include "fibers/scheduler.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"

static VALUE io_pwrite(VALUE io, VALUE object, VALUE offset)
{
    VALUE arguments[] = {object, offset}, scheduler = rb_fiber_scheduler_current();
    if (NIL_P(scheduler) || !hd_scheduler_of_thread()) return rb_funcallv(io, HD_KEPT("pwrite"), 2, arguments);
    VALUE string = rb_obj_as_string(object);
    off_t from = NUM2OFFT(offset);
    rb_io_t *fptr;
    io = rb_io_get_write_io(io);
    GetOpenFile(io, fptr);
    rb_io_check_writable(fptr);
    string = rb_str_new_frozen(string); /* others may change the string while this fiber waits */
    const char *bytes = RSTRING_PTR(string);
    VALUE result = rb_fiber_scheduler_io_pwrite_memory(scheduler, io, from, bytes, RSTRING_LEN(string), 0);
    RB_GC_GUARD(string);
    ssize_t written = NUM2SSIZET(result);
    if (written >= 0) return result;
    rb_exc_raise(rb_funcall(rb_eSystemCallError, rb_intern("new"), 3, rb_io_path(io), SSIZET2NUM(-written),
                            rb_str_new_cstr("rb_io_pwrite")));
}

void hd_init_pwrite(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "Pwrite");
    rb_define_method(extension, "pwrite", io_pwrite, 2);
}
