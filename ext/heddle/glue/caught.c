/* See caught.h. */
#include "caught.h"

void hd_restore_errinfo(VALUE before)
{
    rb_set_errinfo(hd_is_exception(before) ? before : Qnil);
}

VALUE hd_catch(VALUE (*function)(VALUE), VALUE argument, hd_caught *caught)
{
    VALUE before = rb_errinfo();
    caught->state = 0;
    caught->exception = Qnil;
    VALUE value = rb_protect(function, argument, &caught->state);
    if (!caught->state || !hd_is_exception(rb_errinfo())) return value;
    caught->exception = rb_errinfo();
    hd_restore_errinfo(before);
    return value;
}

bool hd_is_kill(const hd_caught *caught)
{
    return caught->state && NIL_P(caught->exception) && rb_errinfo() == HD_FIBER_KILLED;
}

void hd_go_on(const hd_caught *caught)
{
    if (!caught->state) return;
    if (!NIL_P(caught->exception)) rb_exc_raise(caught->exception);
    rb_jump_tag(caught->state);
}
