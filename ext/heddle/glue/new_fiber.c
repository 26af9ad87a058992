/* See new_fiber.h. */
#include "new_fiber.h"

#include "init.h"
#include "caught.h"
#include "loop.h"
#include "park.h"

static VALUE cFiber;
static ID id_new;
static rb_ractor_local_key_t probe_key; /* of a Mutex that nobody holds; a Mutex is not for several Ractors */

static VALUE probe(void)
{
    VALUE mutex = rb_ractor_local_storage_value(probe_key);
    if (NIL_P(mutex)) rb_ractor_local_storage_value_set(probe_key, mutex = rb_mutex_new());
    return mutex;
}

static VALUE lock_and_unlock(VALUE mutex)
{
    rb_mutex_lock(mutex);
    return rb_mutex_unlock(mutex);
}

/* (Only the refusal to lock a Mutex tells.) */
bool hd_in_handler(void)
{
    if (rb_thread_current() != rb_thread_main()) return false;
    hd_caught caught;
    hd_catch(lock_and_unlock, probe(), &caught);
    if (caught.state && !RTEST(rb_obj_is_kind_of(caught.exception, rb_eThreadError))) hd_go_on(&caught);
    return caught.state;
}

/* Does a signal's handler call this? There nobody may lock a Mutex, nor so wait for another thread. */
static VALUE in_handler_p(VALUE self)
{
    (void)self;
    return HD_BOOL(hd_in_handler());
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
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .in_front = true, .switch_away = go_home,
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
    bool at_home = scheduler->home.waits && NIL_P(scheduler->home.order) && hd_in_handler() &&
                   rb_fiber_current() != scheduler->home.fiber;
    VALUE made = at_home ? make_at_home(scheduler, body) : Qnil;
    return RTEST(rb_obj_is_fiber(made)) ? made : rb_funcall_with_block(cFiber, id_new, 0, NULL, body);
}

void hd_init_new_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    probe_key = rb_ractor_local_storage_value_newkey();
    rb_define_private_method(hd_cScheduler, "in_signal_handler?", in_handler_p, 0);
}
