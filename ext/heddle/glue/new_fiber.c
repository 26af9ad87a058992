/* See new_fiber.h. */
#include "new_fiber.h"

#include "loop.h"
#include "park.h"

static VALUE cFiber, probe; /* probe: a Mutex that nobody holds */
static ID id_new;

static VALUE lock_and_unlock(VALUE mutex)
{
    rb_mutex_lock(mutex);
    return rb_mutex_unlock(mutex);
}

/* (Only the refusal to lock a Mutex tells.) */
static bool in_handler(const hd_scheduler *scheduler)
{
    if (NIL_P(scheduler->home.runner)) return false;
    int state = 0;
    VALUE error = rb_errinfo();
    rb_protect(lock_and_unlock, probe, &state);
    if (!state) return false;
    if (!rb_obj_is_kind_of(rb_errinfo(), rb_eThreadError)) rb_jump_tag(state);
    rb_set_errinfo(error);
    return true;
}

static VALUE go_home(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    hd_switch_to(scheduler, scheduler->home.fiber, scheduler->home.fiber);
    return Qnil;
}

static VALUE make_at_home(hd_scheduler *scheduler, VALUE body)
{
    VALUE nothing;
    hd_request request = {.kind = HD_WAIT_FOR_TURN, .subject = Qnil, .in_front = true, .switch_away = go_home,
                          .argument = (VALUE)scheduler, .result = &nothing};
    scheduler->home.order_storage = rb_funcall(rb_fiber_current(), rb_intern("storage"), 0);
    scheduler->home.order = body;
    hd_park(scheduler, &request);
    VALUE made = scheduler->home.order;
    scheduler->home.order = Qnil;
    return made;
}

VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body)
{
    bool at_home = in_handler(scheduler) && scheduler->home.waits && NIL_P(scheduler->home.order) &&
                   rb_fiber_current() != scheduler->home.fiber;
    VALUE made = at_home ? make_at_home(scheduler, body) : Qnil;
    return RTEST(rb_obj_is_fiber(made)) ? made : rb_funcall_with_block(cFiber, id_new, 0, NULL, body);
}

void hd_init_new_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    probe = rb_mutex_new();
    rb_gc_register_mark_object(probe);
}
