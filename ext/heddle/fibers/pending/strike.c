/* See strike.h. */
#include "strike.h"

#include "ruby/caught.h"
#include "ruby/init.h"

/* A pending exception in the queue of a fiber. */
typedef struct {
    hd_strike strike;
    hd_node node; /* in scheduler->strikes.exceptions */
} put_off;

/* Notes in an exception: that it was put off; how far out its block is; the state of the counter when it was raised. */
static ID id_put_off, id_began, id_raised_at, id_cause;

/* -- waits ---------------------------------------------------------------------------------------------------- */

VALUE hd_root(const hd_scheduler *scheduler)
{
    return NIL_P(scheduler->running.root) ? rb_fiber_current() : scheduler->running.root;
}

hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber)
{
    const hd_map *waits = &scheduler->reactor.waits;
    hd_map_node *node = hd_map_find(waits, (hd_word)fiber), *later = node;
    /* a handler's wait, at a switch of the other wait */
    while (later && (later = hd_map_find_next(waits, later))) node = later;
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
    if (hd_wait_unblock_instead(wait, &displaced) && displaced)
        hd_strike_later(scheduler, (VALUE)wait->root, (VALUE)displaced);
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

static bool is_cancel(VALUE exception)
{
    return RTEST(rb_obj_is_kind_of(exception, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))));
}

/* Finds the strike that has the place already: a source has one place for each kind. */
static hd_strike *in_the_place_of(const hd_scheduler *scheduler, VALUE fiber, const hd_strike *one)
{
    hd_strike *strike = NULL;
    while ((strike = hd_strike_next(scheduler, fiber, strike))) {
        if (strike->limits || strike->began != one->began || strike->forced != one->forced) continue;
        if (strike->exception == one->exception || (is_cancel(strike->exception) && is_cancel(one->exception))) break;
    }
    return strike;
}

static hd_strike *put(hd_scheduler *scheduler, VALUE fiber, const hd_strike *like)
{
    if (in_the_place_of(scheduler, fiber, like)) return NULL;
    put_off *one = calloc(1, sizeof(*one));
    if (!one) rb_memerror();
    one->strike = *like;
    one->strike.kept = fiber;
    one->strike.take = take_exception;
    one->strike.drop = drop_exception;
    hd_list_push_back(&scheduler->strikes.exceptions, &one->node);
    hd_strike_add(&one->strike, scheduler, fiber);
    hd_strike_make_due(&one->strike);
    return &one->strike;
}

static uint64_t number_of(VALUE exception, ID name)
{
    VALUE number = rb_attr_get(exception, name);
    return RB_FIXNUM_P(number) ? (uint64_t)FIX2LONG(number) : 0;
}

void hd_strike_note_raised(const hd_scheduler *scheduler, VALUE exception, uint64_t began)
{
    if (OBJ_FROZEN(exception)) return;
    rb_ivar_set(exception, id_began, LONG2FIX((long)began));
    rb_ivar_set(exception, id_raised_at, LONG2FIX((long)scheduler->masks.sequence));
}

void hd_strike_later(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    hd_strike like = {.exception = exception, .began = number_of(exception, id_began)};
    /* The note marks an exception that was put off, perhaps long ago. Without it each would have to be searched for,
     * and the queues may be long. */
    if (put(scheduler, fiber, &like) && !OBJ_FROZEN(exception)) rb_ivar_set(exception, id_put_off, Qtrue);
}

void hd_strike_withdraw(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    for (hd_strike *strike = NULL; (strike = hd_strike_next(scheduler, fiber, strike));) {
        if (strike->limits || strike->exception != exception) continue;
        strike->drop(strike);
        return;
    }
}

void hd_strike_withdraw_everywhere(hd_scheduler *scheduler, VALUE exception)
{
    if (!OBJ_FROZEN(exception) && NIL_P(rb_attr_get(exception, id_put_off))) return;
    const hd_list *exceptions = &scheduler->strikes.exceptions;
    for (hd_node *node = hd_list_first(exceptions), *next; node; node = next) {
        next = hd_list_after(exceptions, node);
        hd_strike *strike = &HD_CONTAINER_OF(node, put_off, node)->strike;
        if (strike->exception == exception) strike->drop(strike);
    }
}

/* -- what is on its way ---------------------------------------------------------------------------------------- */

enum { CAUSES_MAX = 100 };

void hd_strike_left_task(VALUE exception)
{
    for (int i = 0; i < CAUSES_MAX && hd_is_exception(exception); i++) {
        if (!NIL_P(rb_attr_get(exception, id_raised_at))) rb_ivar_set(exception, id_raised_at, Qnil);
        exception = rb_attr_get(exception, id_cause);
    }
}

/* Does it end a block or a task, unlike an error that somebody sends? */
static bool ends_something(VALUE exception, uint64_t began)
{
    return began || is_cancel(exception);
}

/* Is an exception on its way in the running fiber that ends this block, too? Then the block's ensure and rescue
 * clauses run. A second exception would gain nothing, and must not end these clauses in their turn. Blocks that the
 * clauses have begun end as always. */
static bool is_being_ended(const hd_strike *strike)
{
    if (strike->forced || !(strike->limits || ends_something(strike->exception, strike->began))) return false;
    VALUE exception = rb_gv_get("$!");
    for (int i = 0; i < CAUSES_MAX && hd_is_exception(exception); i++) {
        uint64_t began = number_of(exception, id_began);
        bool raised = !NIL_P(rb_attr_get(exception, id_raised_at)) && ends_something(exception, began);
        if (raised && began <= strike->began && strike->began <= number_of(exception, id_raised_at)) return true;
        exception = rb_attr_get(exception, id_cause);
    }
    return false;
}

/* -- delivery -------------------------------------------------------------------------------------------------- */

/* Does a wake for an IO give way to a cancel? It does, because nothing has been done yet, and the fiber may never
 * wait again (it tries a closed IO in a loop). Other wakes stay: a fiber that was given a lock or an element goes on
 * with it. */
static bool gives_way(hd_wait *wait)
{
    bool ready = wait->wake == HD_WOKEN_BY_EVENT && (wait->kind == HD_WAIT_FOR_IO || wait->kind == HD_WAIT_FOR_SELECT);
    bool closed = wait->wake == HD_WOKEN_BY_EXCEPTION && wait->exception &&
                  RTEST(rb_obj_is_kind_of((VALUE)wait->exception, rb_eIOError));
    if (hd_wait_brings(wait)) return false; /* bytes were received */
    if (wait->state != HD_WAIT_READY || !(ready || closed)) return false;
    wait->wake = HD_WOKEN_BY_EXCEPTION;
    wait->exception = 0;
    return true;
}

static hd_mask mask_of(const hd_strike *strike, VALUE root, VALUE fiber)
{
    hd_struck struck = {root, fiber, strike->began, strike->limits};
    return strike->forced ? HD_MASK_IMMEDIATE : hd_interrupt_mask(strike->scheduler, struck, strike->exception);
}

void hd_strike_deliver(hd_strike *strike)
{
    VALUE fiber = (VALUE)strike->fiber_node.key;
    hd_wait *wait = hd_wait_of_chain(strike->scheduler, fiber);
    if (!wait || mask_of(strike, fiber, (VALUE)hd_wait_fiber(wait)) == HD_MASK_NEVER) return;
    if (!hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION) && !strike->limits) gives_way(wait);
}

void hd_strike_fiber(hd_scheduler *scheduler, VALUE fiber, hd_strike like)
{
    if (!hd_wait_of_chain(scheduler, fiber) && !RTEST(rb_fiber_alive_p(fiber))) return;
    hd_strike *strike = put(scheduler, fiber, &like);
    if (!strike) return;
    scheduler->counted.cancels += is_cancel(like.exception);
    hd_strike_deliver(strike);
}

/* Finds the strike that may be raised now and whose block is furthest out. Of several, it takes the first that
 * became due. */
static void look(const hd_scheduler *scheduler, VALUE queue, hd_mask strictest, hd_strike_choice choice,
                 hd_strike **first)
{
    VALUE fiber = rb_fiber_current();
    for (hd_strike *strike = NULL; (strike = hd_strike_next(scheduler, queue, strike));) {
        if (!strike->due || (choice == HD_TIMEOUTS_ONLY && !strike->limits)) continue;
        bool before = !*first || strike->began < (*first)->began ||
                      (strike->began == (*first)->began && strike->due < (*first)->due);
        if (before && mask_of(strike, queue, fiber) <= strictest && !is_being_ended(strike)) *first = strike;
    }
}

void hd_strikes_raise(hd_scheduler *scheduler, hd_mask strictest, hd_strike_choice choice)
{
    if (!scheduler->strikes.due) return;
    VALUE root = hd_root(scheduler), fiber = rb_fiber_current();
    hd_strike *first = NULL;
    look(scheduler, root, strictest, choice, &first);
    if (fiber != root) look(scheduler, fiber, strictest, choice, &first);
    if (!first) return;
    uint64_t began = first->began;
    VALUE exception = first->take(first);
    if (RB_UNDEF_P(exception)) return;
    if (exception == HD_STRIKE_KILLS) rb_funcall(fiber, rb_intern("kill"), 0);
    hd_strike_note_raised(scheduler, exception, began);
    rb_exc_raise(exception);
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
        hd_strike_deliver(strike);
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
    id_began = rb_intern("heddle_began");
    id_raised_at = rb_intern("heddle_raised_at");
    id_cause = rb_intern("cause"); /* where Ruby keeps an exception's cause */
}
