/* Replaces File#initialize. lib/heddle/core_ext/file_open.rb has the part for programs with a scheduler. The method is
 * in C so that a program without a scheduler does not notice its cost. */
#include "ruby/core_ext.h"
#include "ruby/init.h"

static VALUE open_in_fiber(VALUE file, int argc, const VALUE *argv)
{
    VALUE core_ext = rb_const_get(hd_mHeddle, rb_intern("CoreExt"));
    VALUE file_open = rb_const_get(core_ext, rb_intern("FileOpen"));
    bool keywords = rb_keyword_given_p();
    VALUE options = keywords ? argv[argc - 1] : rb_hash_new();
    VALUE rest = rb_ary_new_from_values(argc - 1 - keywords, argv + 1);
    VALUE arguments[] = {file, argv[0], rest, options};
    return rb_funcallv(file_open, rb_intern("make"), 4, arguments);
}

static VALUE initialize(int argc, VALUE *argv, VALUE file)
{
    if (argc - rb_keyword_given_p() < 1 || NIL_P(rb_fiber_scheduler_current()))
        return rb_funcallv_kw(file, HD_KEPT("initialize"), argc, argv, RB_PASS_CALLED_KEYWORDS);
    return open_in_fiber(file, argc, argv);
}

void hd_init_file_open(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_private_method(rb_define_module_under(core_ext, "FileOpen"), "initialize", initialize, -1);
}
