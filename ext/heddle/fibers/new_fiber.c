/* See new_fiber.h. */
#include "new_fiber.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/in_handler.h"
#include "ruby/init.h"
#include "loop.h"
#include "park.h"

static VALUE cFiber;
static ID id_new;

/* -- the maker ------------------------------------------------------------------------------------------------ */

/* The maker of a thread: a fiber in which no handler runs, and which makes fibers for fibers in which one runs. It
 * holds the orders: [[body, storage], ...]. A third element is the fiber that was made. */
static ID id_maker, id_orders;

static VALUE serve(VALUE orders)
{
    for (VALUE order; !NIL_P(order = rb_ary_shift(orders));) {
        VALUE options = rb_hash_new();
        rb_hash_aset(options, ID2SYM(rb_intern("storage")), rb_ary_entry(order, 1));
        rb_ary_push(order, rb_funcall_with_block_kw(cFiber, id_new, 1, &options, rb_ary_entry(order, 0),
                                                    RB_PASS_KEYWORDS));
    }
    hd_loop_turn(hd_scheduler_of_thread(), NULL, rb_fiber_current());
    return Qnil;
}

/* Serves all orders whenever control comes here, and then wakes the fibers that have ordered. */
static VALUE maker_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, orders))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    for (;;) {
        int state = 0;
        rb_protect(serve, orders, &state);
        if (!state) continue;
        if (!hd_is_exception(rb_errinfo())) rb_jump_tag(state);
        /* it comes from another handler, or was sent to the thread */
        hd_raise_at_home(hd_scheduler_of_thread(), rb_errinfo());
        rb_set_errinfo(Qnil);
    }
    return Qnil;
}

static VALUE go_to_maker(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->running.root = scheduler->home.maker;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = true;
    return rb_fiber_transfer(scheduler->home.maker, 0, NULL);
}

/* Has the maker make a fiber. nil: another handler has interrupted the maker meanwhile, and waits there. */
static VALUE make_without_handler(hd_scheduler *scheduler, VALUE body)
{
    VALUE nothing, order = rb_ary_new_from_args(2, body, rb_funcall(rb_fiber_current(), rb_intern("storage"), 0));
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = HD_IN_FRONT, .switch_away = go_to_maker,
                          .argument = (VALUE)scheduler, .result = &nothing};
    rb_ary_push(rb_attr_get(scheduler->home.maker, id_orders), order);
    hd_park(scheduler, &request);
    return rb_ary_entry(order, 2);
}

VALUE hd_maker(void)
{
    VALUE thread = rb_thread_current(), maker = rb_attr_get(thread, id_maker);
    if (!NIL_P(maker) && RTEST(rb_fiber_alive_p(maker))) return maker;
    if (OBJ_FROZEN(thread) || hd_in_handler()) return Qnil;
    VALUE orders = rb_ary_new();
    maker = rb_fiber_new(maker_body, orders);
    rb_ivar_set(maker, id_orders, orders);
    return rb_ivar_set(thread, id_maker, maker);
}

/* -- for tasks ------------------------------------------------------------------------------------------------ */

VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body)
{
    if (NIL_P(scheduler->home.maker)) scheduler->home.maker = hd_maker();
    VALUE maker = scheduler->home.maker;
    bool ordered = !NIL_P(maker) && rb_fiber_current() != maker && hd_in_handler() &&
                   !hd_wait_of_chain(scheduler, maker); /* another handler waits there, or in a fiber that it resumed */
    VALUE made = ordered ? make_without_handler(scheduler, body) : Qnil;
    return NIL_P(made) ? rb_funcall_with_block(cFiber, id_new, 0, NULL, body) : made;
}

void hd_init_new_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    id_maker = rb_intern("__heddle_maker__");
    id_orders = rb_intern("__heddle_orders__");
}
