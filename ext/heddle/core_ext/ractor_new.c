/* Ractor.new tells the pool of stacks that fibers of other Ractors will use it; see fibers/warm_stacks.h. */
#include "fibers/warm_stacks.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"

static VALUE ractor_new(int argc, VALUE *argv, VALUE self)
{
    hd_warm_stacks_leave();
    VALUE block = rb_block_given_p() ? rb_block_proc() : Qnil;
    VALUE ractor = rb_funcall_with_block_kw(self, HD_KEPT("new"), argc, argv, block, RB_PASS_CALLED_KEYWORDS);
    RB_GC_GUARD(block); /* until the method runs, the collector sees no other reference to it */
    return ractor;
}

void hd_init_ractor_new(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "RactorNew");
    rb_define_method(extension, "new", ractor_new, -1);
}
