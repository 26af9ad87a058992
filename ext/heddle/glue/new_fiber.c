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

/* (Before the first wait of a run, home is not in its loop yet: it enters that while this fiber lets the others go on,
 * for the one that has called run is among those.) */
static VALUE make_at_home(hd_scheduler *scheduler, VALUE body)
{
    VALUE nothing, storage = rb_funcall(rb_fiber_current(), rb_intern("storage"), 0);
    VALUE order = rb_ary_new_from_args(2, body, storage);
    bool there = scheduler->home.waits;
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = there ? HD_IN_FRONT : HD_BEHIND,
                          .switch_away = there ? go_home : NULL, .argument = (VALUE)scheduler, .result = &nothing};
    if (NIL_P(scheduler->home.orders)) scheduler->home.orders = rb_ary_new();
    rb_ary_push(scheduler->home.orders, order);
    hd_park(scheduler, &request);
    return rb_ary_entry(order, 2);
}

VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body)
{
    bool at_home = hd_scheduler_inside(scheduler) && hd_in_handler() && rb_fiber_current() != scheduler->home.fiber;
    VALUE made = at_home ? make_at_home(scheduler, body) : Qnil;
    return NIL_P(made) ? rb_funcall_with_block(cFiber, id_new, 0, NULL, body) : made;
}

void hd_init_new_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    probe_key = rb_ractor_local_storage_value_newkey();
    rb_define_private_method(hd_cScheduler, "in_signal_handler?", in_handler_p, 0);
}
