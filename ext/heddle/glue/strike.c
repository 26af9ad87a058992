/* See strike.h. */
#include "strike.h"

#include "init.h"

/* An exception in the queue of a fiber. */
typedef struct {
    hd_strike strike;
    hd_node node; /* in scheduler->strikes.exceptions */
} put_off;

static ID id_put_off;

/* -- waits ---------------------------------------------------------------------------------------------------- */

VALUE hd_root(const hd_scheduler *scheduler)
{
    return NIL_P(scheduler->running.root) ? rb_fiber_current() : scheduler->running.root;
}

hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber)
{
    const hd_map *waits = &scheduler->reactor.waits;
    hd_map_node *node = hd_map_find(waits, (hd_word)fiber), *later = node;
    while (later && (later = hd_map_find_next(waits, later))) node = later; /* a handler's, at a switch of the other */
    return node ? HD_CONTAINER_OF(node, hd_wait, fiber_node) : NULL;
}

hd_wait *hd_wait_of_chain(hd_scheduler *scheduler, VALUE root)
{
    if (root == scheduler->home.fiber && scheduler->home.top) return scheduler->home.top;
    hd_wait *wait = hd_wait_of(scheduler, root);
    if (wait) return wait;
    hd_map_node *node = hd_map_find(&scheduler->reactor.chains, (hd_word)root);
    return node ? HD_CONTAINER_OF(node, hd_wait, root_node) : NULL;
}

bool hd_wake_wait(hd_wait *wait, hd_wake wake)
{
    if (!hd_wait_settle(wait, wake)) return false;
    hd_reactor_wake_if_asleep(wait->reactor);
    return true;
}

bool hd_end_operation(hd_wait *wait, VALUE exception)
{
    if (!hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION)) return false;
    wait->exception = (hd_word)exception;
    return true;
}

void hd_unblock_instead(hd_scheduler *scheduler, hd_wait *wait)
{
    hd_word displaced;
    if (!hd_wait_unblock_instead(wait, &displaced)) return;
    if (displaced)
        hd_strike_later(scheduler, (VALUE)wait->root, (VALUE)displaced);
    else
        hd_strike_was_overtaken(scheduler, wait);
}

/* -- the queues ----------------------------------------------------------------------------------------------- */

hd_strike *hd_strike_next(const hd_scheduler *scheduler, VALUE fiber, const hd_strike *after)
{
    hd_map_node *node = after ? hd_map_find_next(&scheduler->strikes.by_fiber, &after->fiber_node)
                              : hd_map_find(&scheduler->strikes.by_fiber, (hd_word)fiber);
    return node ? HD_CONTAINER_OF(node, hd_strike, fiber_node) : NULL;
}

void hd_strike_add(hd_strike *strike, hd_scheduler *scheduler, VALUE fiber)
{
    strike->scheduler = scheduler;
    hd_map_add(&scheduler->strikes.by_fiber, &strike->fiber_node, (hd_word)fiber);
}

void hd_strike_make_due(hd_strike *strike)
{
    if (strike->due) return;
    strike->due = ++strike->scheduler->strikes.sequence;
    strike->scheduler->strikes.due++;
    strike->scheduler->strikes.timeouts_due += strike->limits;
}

bool hd_strike_remove(hd_strike *strike)
{
    if (!hd_map_node_linked(&strike->fiber_node)) return false;
    hd_map_remove(&strike->scheduler->strikes.by_fiber, &strike->fiber_node);
    if (!strike->due) return false;
    strike->scheduler->strikes.due--;
    strike->scheduler->strikes.timeouts_due -= strike->limits;
    return true;
}

static void drop_exception(hd_strike *strike)
{
    hd_strike_remove(strike);
    hd_node_remove(&((put_off *)strike)->node);
    free(strike);
}

static VALUE take_exception(hd_strike *strike)
{
    VALUE exception = strike->exception;
    drop_exception(strike);
    return exception;
}

static hd_strike *put(hd_scheduler *scheduler, VALUE fiber, VALUE exception, uint64_t began)
{
    put_off *one = calloc(1, sizeof(*one));
    if (!one) rb_memerror();
    one->strike.kept = fiber;
    one->strike.exception = exception;
    one->strike.began = began;
    one->strike.take = take_exception;
    one->strike.drop = drop_exception;
    hd_list_push_back(&scheduler->strikes.exceptions, &one->node);
    hd_strike_add(&one->strike, scheduler, fiber);
    hd_strike_make_due(&one->strike);
    return &one->strike;
}

/* The exception that waits in the queue of the fiber for its next wait, other than this one; or NULL. */
static hd_strike *another_waiting(const hd_scheduler *scheduler, VALUE fiber, const hd_strike *one)
{
    hd_strike *strike = hd_strike_next(scheduler, fiber, NULL);
    while (strike && (strike->limits || strike->ended || strike == one))
        strike = hd_strike_next(scheduler, fiber, strike);
    return strike;
}

static hd_strike *waiting(const hd_scheduler *scheduler, VALUE fiber)
{
    return another_waiting(scheduler, fiber, NULL);
}

/* Tells an exception that was put off, perhaps long ago, from those that never were: the queues may be long. */
static void remember(VALUE exception)
{
    if (!OBJ_FROZEN(exception)) rb_ivar_set(exception, id_put_off, Qtrue);
}

void hd_strike_later(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    /* The first one stays: a scope that fails must not take away the cancel of its owner. */
    if (waiting(scheduler, fiber)) return;
    put(scheduler, fiber, exception, 0);
    remember(exception);
}

void hd_strike_withdraw(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    hd_strike *strike = waiting(scheduler, fiber);
    if (strike && strike->exception == exception) strike->drop(strike);
}

void hd_strike_withdraw_everywhere(hd_scheduler *scheduler, VALUE exception)
{
    if (!OBJ_FROZEN(exception) && NIL_P(rb_attr_get(exception, id_put_off))) return;
    const hd_list *exceptions = &scheduler->strikes.exceptions;
    for (hd_node *node = hd_list_first(exceptions), *next; node; node = next) {
        next = hd_list_after(exceptions, node);
        hd_strike *strike = &HD_CONTAINER_OF(node, put_off, node)->strike;
        if (strike->exception == exception && !strike->ended) strike->drop(strike);
    }
}

/* -- delivery ------------------------------------------------------------------------------------------------- */

/* The strike for which the wait was ended, in the queue of its fiber or of its root; or NULL. */
static hd_strike *that_ended(const hd_scheduler *scheduler, const hd_wait *wait)
{
    const VALUE queues[] = {(VALUE)wait->root, (VALUE)hd_wait_fiber(wait)};
    for (int i = 0; i < 2; i++)
        for (hd_strike *strike = NULL; (strike = hd_strike_next(scheduler, queues[i], strike));)
            if (strike->ended == wait) return strike;
    return NULL;
}

/* A wake for an IO that is on its way gives way to a cancel: nothing has been done yet, and the fiber may never wait
 * again (it tries a closed IO in a loop). Others stay: who was given a lock or an element goes on with it. */
static bool gives_way(const hd_scheduler *scheduler, hd_wait *wait)
{
    bool ready = wait->wake == HD_WOKEN_BY_EVENT && (wait->kind == HD_WAIT_FOR_IO || wait->kind == HD_WAIT_FOR_SELECT);
    bool closed = wait->wake == HD_WOKEN_BY_EXCEPTION && wait->exception &&
                  RTEST(rb_obj_is_kind_of((VALUE)wait->exception, rb_eIOError));
    if (hd_wait_brings(wait)) return false; /* (bytes that have come) */
    if (wait->state != HD_WAIT_READY || !(ready || closed) || that_ended(scheduler, wait)) return false;
    wait->wake = HD_WOKEN_BY_EXCEPTION;
    wait->exception = 0;
    return true;
}

static void deliver(hd_strike *strike, hd_wait *wait)
{
    hd_struck struck = {(VALUE)strike->fiber_node.key, (VALUE)hd_wait_fiber(wait), strike->began, strike->limits};
    if (hd_interrupt_mask(strike->scheduler, struck, strike->exception) == HD_MASK_NEVER) return;
    if (hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION) || (!strike->limits && gives_way(strike->scheduler, wait)))
        strike->ended = wait;
}

void hd_strike_deliver(hd_strike *strike)
{
    hd_wait *wait = hd_wait_of_chain(strike->scheduler, (VALUE)strike->fiber_node.key);
    if (wait) deliver(strike, wait);
}

/* It waits for the next wait of its fiber, unless another one does already (see hd_strike_later). */
static void wait_for_next_wait(hd_strike *strike)
{
    strike->ended = NULL;
    if (strike->limits) return;
    if (another_waiting(strike->scheduler, (VALUE)strike->fiber_node.key, strike))
        strike->drop(strike);
    else
        remember(strike->exception);
}

static bool is_cancel(VALUE exception)
{
    return RTEST(rb_obj_is_kind_of(exception, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))));
}

void hd_strike_fiber(hd_scheduler *scheduler, VALUE fiber, VALUE exception, uint64_t began)
{
    hd_wait *wait = hd_wait_of_chain(scheduler, fiber);
    if (!wait && !RTEST(rb_fiber_alive_p(fiber))) return;
    scheduler->counted.cancels += is_cancel(exception);
    hd_strike *strike = put(scheduler, fiber, exception, began);
    if (wait) deliver(strike, wait);
    if (!strike->ended) wait_for_next_wait(strike);
}

void hd_strike_was_overtaken(hd_scheduler *scheduler, const hd_wait *wait)
{
    hd_strike *strike = that_ended(scheduler, wait);
    if (strike) wait_for_next_wait(strike);
}

static void raise(hd_strike *strike)
{
    VALUE exception = strike->take(strike);
    if (!RB_UNDEF_P(exception)) rb_exc_raise(exception);
}

void hd_strike_raise_after(hd_scheduler *scheduler, const hd_wait *wait)
{
    hd_strike *strike = that_ended(scheduler, wait);
    if (strike) raise(strike);
}

/* The first to have become due of those that may strike now. */
static void look(const hd_scheduler *scheduler, VALUE queue, hd_struck struck, hd_mask strictest,
                 hd_strike_choice choice, hd_strike **first)
{
    for (hd_strike *strike = NULL; (strike = hd_strike_next(scheduler, queue, strike));) {
        if (!strike->due || (choice == HD_TIMEOUTS_ONLY && !strike->limits)) continue;
        if (*first && (*first)->due < strike->due) continue;
        struck.began = strike->began;
        struck.limits = strike->limits;
        if (hd_interrupt_mask(scheduler, struck, strike->exception) <= strictest) *first = strike;
    }
}

void hd_strikes_raise(hd_scheduler *scheduler, hd_mask strictest, hd_strike_choice choice)
{
    if (!scheduler->strikes.due) return;
    hd_struck struck = {hd_root(scheduler), rb_fiber_current(), 0, false};
    hd_strike *first = NULL;
    look(scheduler, struck.root, struck, strictest, choice, &first);
    if (struck.fiber != struck.root) look(scheduler, struck.fiber, struck, strictest, choice, &first);
    if (first) raise(first);
}

void hd_strikes_drop(hd_scheduler *scheduler)
{
    if (!scheduler->strikes.by_fiber.count) return;
    VALUE fiber = rb_fiber_current();
    for (hd_strike *left; (left = hd_strike_next(scheduler, fiber, NULL));) left->drop(left);
}

void hd_strikes_deliver_all(hd_scheduler *scheduler)
{
    const hd_list *exceptions = &scheduler->strikes.exceptions;
    for (hd_node *node = hd_list_first(exceptions); node; node = hd_list_after(exceptions, node)) {
        hd_strike *strike = &HD_CONTAINER_OF(node, put_off, node)->strike;
        if (!strike->ended) hd_strike_deliver(strike);
    }
}

static void mark(hd_map_node *node, void *unused)
{
    (void)unused;
    const hd_strike *strike = HD_CONTAINER_OF(node, hd_strike, fiber_node);
    rb_gc_mark((VALUE)node->key); /* it is found by its address, which must stay */
    rb_gc_mark(strike->kept);
    rb_gc_mark(strike->exception);
}

void hd_strikes_mark(const hd_scheduler *scheduler)
{
    if (scheduler->strikes.by_fiber.buckets) hd_map_each(&scheduler->strikes.by_fiber, mark, NULL);
}

static void free_exceptions(hd_scheduler *scheduler)
{
    for (hd_node *node; (node = hd_list_first(&scheduler->strikes.exceptions));) {
        hd_node_remove(node);
        free(HD_CONTAINER_OF(node, put_off, node));
    }
}

void hd_strikes_forget(hd_scheduler *scheduler)
{
    free_exceptions(scheduler);
    hd_map_forget(&scheduler->strikes.by_fiber);
    scheduler->strikes.due = scheduler->strikes.timeouts_due = 0;
}

void hd_strikes_free(hd_scheduler *scheduler)
{
    free_exceptions(scheduler);
    hd_map_free(&scheduler->strikes.by_fiber);
}

/* -- home ----------------------------------------------------------------------------------------------------- */

void hd_raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    if (NIL_P(scheduler->home.fatal)) scheduler->home.fatal = error;
    scheduler->loop.check_interrupts = true;
}

void hd_init_strike(void)
{
    id_put_off = rb_intern("heddle_put_off");
}
