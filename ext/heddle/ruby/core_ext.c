/* See core_ext.h. */
#include "core_ext.h"

#include <ruby/atomic.h>

#include "init.h"

/* -- when the methods are replaced: once, with the first scheduler of the process, in whichever Ractor ---------- */

enum { NOT_YET, UNDER_WAY, DONE };
static rb_atomic_t replaced = NOT_YET;

/* @return [Boolean] is the caller the first one, which must do it? */
static VALUE begin_replacing(VALUE self)
{
    return HD_BOOL(RUBY_ATOMIC_CAS(replaced, NOT_YET, UNDER_WAY) == NOT_YET);
}

static VALUE end_replacing(VALUE self)
{
    RUBY_ATOMIC_SET(replaced, DONE);
    return Qnil;
}

static VALUE replaced_p(VALUE self)
{
    return HD_BOOL(RUBY_ATOMIC_LOAD(replaced) == DONE);
}

void hd_init_core_ext(void)
{
    VALUE features = rb_define_module_under(hd_mHeddle, "RubyFeatures");
    rb_define_const(features, "OPEN_IS_OFFLOADED", HD_BOOL(HD_OPEN_IS_OFFLOADED));
    rb_define_const(features, "FLUSH_PASSES_BY_IO_WRITE", HD_BOOL(HD_FLUSH_PASSES_BY_IO_WRITE));
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_singleton_method(core_ext, "begin_replacing", begin_replacing, 0);
    rb_define_singleton_method(core_ext, "end_replacing", end_replacing, 0);
    rb_define_singleton_method(core_ext, "replaced?", replaced_p, 0);
}
