/* In place of Dir.chdir, Dir.fchdir and Dir#chdir. The directory is the process's. So Ruby refuses to change it in a
 * thread while a block of another thread has changed it; and what it refuses to threads is refused to tasks. In C, for
 * Ruby warns of a block within a block, and names the line of the Ruby method that calls it. */
#include "core_ext.h"
#include "init.h"
#include "scheduler.h"

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

static void note_fiber(VALUE scheduler, VALUE fiber)
{
    rb_funcall(scheduler, rb_intern("directory_changed_by="), 1, fiber);
}

static VALUE block_has_ended(VALUE scheduler)
{
    note_fiber(scheduler, Qnil);
    return Qnil;
}

static VALUE change_directory(VALUE self, ID kept, int argc, const VALUE *argv)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    const change own = {.self = self, .kept = kept, .argc = argc, .argv = argv};
    if (NIL_P(scheduler) || !RTEST(rb_obj_is_kind_of(scheduler, hd_cScheduler))) return by_ruby((VALUE)&own);
    VALUE root = rb_funcall(scheduler, rb_intern("root"), 0);
    VALUE changed_by = rb_funcall(scheduler, rb_intern("directory_changed_by"), 0);
    if (!NIL_P(changed_by) && changed_by != root)
        rb_raise(rb_eRuntimeError, "conflicting chdir during another chdir block");
    if (!NIL_P(changed_by) || !rb_block_given_p()) return by_ruby((VALUE)&own);
    note_fiber(scheduler, root);
    return rb_ensure(by_ruby, (VALUE)&own, block_has_ended, scheduler);
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
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "Chdir");
    rb_define_method(rb_define_module_under(extension, "Path"), "chdir", change_to_path, -1);
    rb_define_method(rb_define_module_under(extension, "Descriptor"), "fchdir", change_to_descriptor, -1);
}
