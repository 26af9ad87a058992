/* Replaces Fiber#raise and Fiber#kill. */
#include "fibers/pending/pending.h"
#include "fibers/scheduled_fiber.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

typedef struct {
    VALUE fiber;
    ID kept; /* Ruby's own method */
    int argc;
    VALUE *argv;
    int keywords;
} original_call;

static VALUE call_original(VALUE pointer)
{
    original_call *call = (void *)pointer;
    return rb_funcallv_kw(call->fiber, call->kept, call->argc, call->argv, call->keywords);
}

static VALUE exception_of(int argc, VALUE *argv)
{
    if (argc && rb_keyword_given_p()) { /* cause: */
        VALUE cause = rb_hash_lookup(argv[argc - 1], ID2SYM(rb_intern("cause")));
        VALUE exception = rb_make_exception(argc - 1, argv);
        if (!NIL_P(exception) && !OBJ_FROZEN(exception)) rb_ivar_set(exception, rb_intern("cause"), cause);
        return exception;
    }
    return argc ? rb_make_exception(argc, argv) : rb_exc_new_cstr(rb_eRuntimeError, "unhandled exception");
}

/* Raises in a fiber, or kills it, that has stopped because its time slice was over: when it waits next. */
static VALUE raise_later(hd_scheduler *scheduler, const hd_wait *wait, VALUE exception)
{
    hd_raise_later(scheduler, (VALUE)hd_wait_fiber(wait), exception);
    return Qnil;
}

/* Raises in a fiber or kills it. Plain CRuby transfers to a fiber that Heddle has parked, and when that ends, control
 * goes to the root: the caller would be lost. So the caller is put into the ready queue first. */
static VALUE raise_into(VALUE fiber, ID kept, int argc, VALUE *argv)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    int keywords = rb_keyword_given_p() ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS;
    original_call call = {fiber, kept, argc, argv, keywords};
    if (!scheduler || fiber == rb_fiber_current() || !scheduler->reactor.backend ||
        (!hd_wait_of(scheduler, fiber) && !hd_resumes_another(fiber)))
        return call_original((VALUE)&call);
    const hd_wait *wait = hd_wait_of_chain(scheduler, fiber);
    if (wait && wait->sliced)
        return raise_later(scheduler, wait, kept == HD_KEPT("kill") ? HD_PENDING_KILL : exception_of(argc, argv));
    return hd_run_instead(scheduler, HD_IN_FRONT, call_original, (VALUE)&call);
}

static VALUE fiber_raise(int argc, VALUE *argv, VALUE fiber)
{
    return raise_into(fiber, HD_KEPT("raise"), argc, argv);
}

static VALUE fiber_kill(VALUE fiber)
{
    return raise_into(fiber, HD_KEPT("kill"), 0, NULL);
}

void hd_init_fiber_raise(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "FiberRaise");
    rb_define_method(extension, "raise", fiber_raise, -1);
    rb_define_method(extension, "kill", fiber_kill, 0);
}
