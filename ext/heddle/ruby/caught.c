/* See caught.h. */
#include "caught.h"

void hd_restore_errinfo(VALUE before)
{
    rb_set_errinfo(hd_is_exception(before) ? before : Qnil);
}

typedef struct {
    VALUE (*function)(VALUE);
    VALUE argument;
    hd_caught *caught;
} catch_call;

static VALUE note(VALUE pointer, VALUE exception)
{
    ((catch_call *)pointer)->caught->exception = exception;
    return Qnil;
}

static VALUE call_rescued(VALUE pointer)
{
    const catch_call *call = (void *)pointer;
    return rb_rescue2(call->function, call->argument, note, pointer, rb_eException, (VALUE)0);
}

/* If a kill was caught before, its number is in errinfo. Then this function rescues the exception, because only in
 * this way Ruby puts the number back. Without the number Ruby crashes when the kill goes on. */
VALUE hd_catch(VALUE (*function)(VALUE), VALUE argument, hd_caught *caught)
{
    VALUE before = rb_errinfo();
    catch_call call = {function, argument, caught};
    *caught = (hd_caught){.exception = Qnil};
    bool killed = !NIL_P(before) && !hd_is_exception(before);
    VALUE value = rb_protect(killed ? call_rescued : function, killed ? (VALUE)&call : argument, &caught->state);
    if (!NIL_P(caught->exception)) {
        caught->state = HD_RAISED;
    }
    else if (caught->state && hd_is_exception(rb_errinfo())) {
        caught->exception = rb_errinfo();
        hd_restore_errinfo(before);
    }
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

VALUE hd_jump(VALUE state)
{
    if (state) rb_jump_tag((int)state);
    return Qnil;
}

void hd_go_on_if_interrupted(const hd_caught *caught)
{
    if (!RTEST(rb_obj_is_kind_of(caught->exception, rb_eStandardError))) hd_go_on(caught);
}
