/* See new_fiber.h. */
#include "new_fiber.h"

#include "init.h"
#include "caught.h"
#include "fiber_return.h"
#include "in_handler.h"
#include "loop.h"
#include "park.h"
#include "strike.h"

static VALUE cFiber;
static ID id_new;

/* -- the maker ------------------------------------------------------------------------------------------------ */

/* A fiber of the main thread in which no handler runs: it makes the fibers for those that do. */
static struct {
    VALUE fiber;
    VALUE orders;        /* [[body, storage], ...]; a third element is what was made */
    unsigned generation; /* of the process in which it was made */
} maker = {Qnil, Qnil, 0};

static VALUE serve(VALUE unused)
{
    for (VALUE order; !NIL_P(order = rb_ary_shift(maker.orders));) {
        VALUE options = rb_hash_new();
        rb_hash_aset(options, ID2SYM(rb_intern("storage")), rb_ary_entry(order, 1));
        rb_ary_push(order, rb_funcall_with_block_kw(cFiber, id_new, 1, &options, rb_ary_entry(order, 0),
                                                    RB_PASS_KEYWORDS));
    }
    hd_loop_turn(hd_scheduler_of_thread(), NULL, rb_fiber_current());
    return unused;
}

/* Serves all orders, whenever control comes here, and then lets the fibers go on that have ordered. */
static VALUE maker_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)argv, (void)blockarg;
    for (;;) {
        int state = 0;
        rb_protect(serve, Qnil, &state);
        if (!state) continue;
        if (!hd_is_exception(rb_errinfo())) rb_jump_tag(state);
        hd_raise_at_home(hd_scheduler_of_thread(), rb_errinfo()); /* of another handler, or sent to the thread */
        rb_set_errinfo(Qnil);
    }
    return Qnil;
}

static bool maker_serves(void)
{
    return !NIL_P(maker.fiber) && !hd_forked_since(maker.generation) && RTEST(rb_fiber_alive_p(maker.fiber));
}

static VALUE go_to_maker(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->running.root = maker.fiber;
    scheduler->running.task = Qnil;
    scheduler->running.scheduled = true;
    return hd_transfer_and_send_back(scheduler, maker.fiber, 0, NULL);
}

/* nil: the maker was interrupted by another handler, which waits there. */
static VALUE make_without_handler(hd_scheduler *scheduler, VALUE body)
{
    VALUE nothing, order = rb_ary_new_from_args(2, body, rb_funcall(rb_fiber_current(), rb_intern("storage"), 0));
    hd_request request = {.kind = HD_WAIT_YIELDED, .subject = Qnil, .in_front = true, .switch_away = go_to_maker,
                          .argument = (VALUE)scheduler, .result = &nothing};
    rb_ary_push(maker.orders, order);
    hd_park(scheduler, &request);
    return rb_ary_entry(order, 2);
}

VALUE hd_prepare_new_fibers(void)
{
    if (rb_thread_current() != rb_thread_main()) return Qnil;
    if (!maker_serves() && !hd_in_handler()) {
        maker.orders = rb_ary_new();
        maker.generation = hd_fork_generation;
        maker.fiber = rb_fiber_new(maker_body, Qnil);
    }
    return maker_serves() ? maker.fiber : Qnil;
}

/* -- for tasks ------------------------------------------------------------------------------------------------ */

VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body)
{
    bool ordered = hd_in_handler() && maker_serves() && rb_fiber_current() != maker.fiber;
    VALUE made = ordered ? make_without_handler(scheduler, body) : Qnil;
    return NIL_P(made) ? rb_funcall_with_block(cFiber, id_new, 0, NULL, body) : made;
}

void hd_init_new_fiber(void)
{
    id_new = rb_intern("new");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    rb_gc_register_address(&maker.fiber);
    rb_gc_register_address(&maker.orders);
}
