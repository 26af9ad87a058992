/* Replaces Dir.chdir, Dir.fchdir and Dir#chdir. The directory belongs to the process. So Ruby refuses to change it in a
 * thread while a block of another thread has changed it, and Heddle refuses the same to tasks. The method is in C,
 * because Ruby warns of a block within a block, and names the line of the Ruby method that calls it. */
#include "fibers/pending/pending.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"

static ID id_changed_by; /* where a scheduler keeps the root whose block has changed the directory, or nil */

typedef struct {
    VALUE self;
    ID kept;
    int argc;
    const VALUE *argv;
} change;

static VALUE call_block(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused))
{
    (void)first, (void)unused, (void)blockarg;
    return rb_yield_values2(argc, argv);
}

static VALUE by_ruby(VALUE pointer)
{
    const change *own = (void *)pointer;
    if (!rb_block_given_p())
        return rb_funcallv_kw(own->self, own->kept, own->argc, own->argv, RB_PASS_CALLED_KEYWORDS);
    return rb_block_call_kw(own->self, own->kept, own->argc, own->argv, call_block, Qnil, RB_PASS_CALLED_KEYWORDS);
}

static VALUE block_has_ended(VALUE scheduler)
{
    return rb_ivar_set(scheduler, id_changed_by, Qnil);
}

static VALUE change_directory(VALUE self, ID kept, int argc, const VALUE *argv)
{
    const hd_scheduler *scheduler = hd_scheduler_here();
    const change own = {.self = self, .kept = kept, .argc = argc, .argv = argv};
    if (!scheduler) return by_ruby((VALUE)&own);
    VALUE root = hd_root(scheduler), changed_by = rb_attr_get(scheduler->self, id_changed_by);
    if (!NIL_P(changed_by) && changed_by != root)
        rb_raise(rb_eRuntimeError, "conflicting chdir during another chdir block");
    if (!NIL_P(changed_by) || !rb_block_given_p()) return by_ruby((VALUE)&own);
    rb_ivar_set(scheduler->self, id_changed_by, root);
    return rb_ensure(by_ruby, (VALUE)&own, block_has_ended, scheduler->self);
}

static VALUE change_to_path(int argc, VALUE *argv, VALUE self)
{
    return change_directory(self, HD_KEPT("chdir"), argc, argv);
}

static VALUE change_to_descriptor(int argc, VALUE *argv, VALUE self)
{
    return change_directory(self, HD_KEPT("fchdir"), argc, argv);
}

void hd_init_chdir(void)
{
    id_changed_by = rb_intern("@directory_changed_by");
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "Chdir");
    rb_define_method(rb_define_module_under(extension, "Path"), "chdir", change_to_path, -1);
    rb_define_method(rb_define_module_under(extension, "Descriptor"), "fchdir", change_to_descriptor, -1);
}
