/* See pending.h. */
#include "pending.h"

#include "ruby/caught.h"
#include "ruby/init.h"

/* A pending exception in the queue of a fiber. */
typedef struct {
    hd_pending pending;
    hd_node node; /* in scheduler->pending.exceptions */
} put_off;

/* Notes in an exception: that it was put off; how far out its block is; the state of the counter when it was raised. */
static ID id_put_off, id_began, id_raised_at, id_cause;

/* -- waits ---------------------------------------------------------------------------------------------------- */

VALUE hd_root(const hd_scheduler *scheduler)
{
    VALUE root = scheduler->running.root;
    /* where no loop turns, nobody notes that the root has ended */
    bool lives = !NIL_P(root) && (RB_LIKELY(hd_scheduler_inside(scheduler)) || RTEST(rb_fiber_alive_p(root)));
    return lives ? root : rb_fiber_current();
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
        hd_raise_later(scheduler, (VALUE)wait->root, (VALUE)displaced);
}

/* -- the queues ----------------------------------------------------------------------------------------------- */

hd_pending *hd_pending_next(const hd_scheduler *scheduler, VALUE fiber, const hd_pending *after)
{
    hd_map_node *node = after ? hd_map_find_next(&scheduler->pending.by_fiber, &after->fiber_node)
                              : hd_map_find(&scheduler->pending.by_fiber, (hd_word)fiber);
    return node ? HD_CONTAINER_OF(node, hd_pending, fiber_node) : NULL;
}

void hd_pending_add(hd_pending *pending, hd_scheduler *scheduler, VALUE fiber)
{
    pending->scheduler = scheduler;
    hd_map_add(&scheduler->pending.by_fiber, &pending->fiber_node, (hd_word)fiber);
}

void hd_pending_make_due(hd_pending *pending)
{
    if (pending->due) return;
    pending->due = ++pending->scheduler->pending.sequence;
    pending->scheduler->pending.due++;
    pending->scheduler->pending.timeouts_due += pending->limits;
}

bool hd_pending_remove(hd_pending *pending)
{
    if (!hd_map_node_linked(&pending->fiber_node)) return false;
    hd_map_remove(&pending->scheduler->pending.by_fiber, &pending->fiber_node);
    if (!pending->due) return false;
    pending->scheduler->pending.due--;
    pending->scheduler->pending.timeouts_due -= pending->limits;
    return true;
}

static void drop_exception(hd_pending *pending)
{
    hd_pending_remove(pending);
    hd_node_remove(&((put_off *)pending)->node);
    free(pending);
}

static VALUE take_exception(hd_pending *pending)
{
    VALUE exception = pending->exception;
    drop_exception(pending);
    return exception;
}

static bool is_cancel(VALUE exception)
{
    return RTEST(rb_obj_is_kind_of(exception, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))));
}

/* Finds the pending exception that has the place already: a source has one place for each kind. */
static hd_pending *in_the_place_of(const hd_scheduler *scheduler, VALUE fiber, const hd_pending *one)
{
    hd_pending *pending = NULL;
    while ((pending = hd_pending_next(scheduler, fiber, pending))) {
        if (pending->limits || pending->began != one->began || pending->forced != one->forced) continue;
        if (pending->exception == one->exception || (is_cancel(pending->exception) && is_cancel(one->exception))) break;
    }
    return pending;
}

static hd_pending *put(hd_scheduler *scheduler, VALUE fiber, const hd_pending *like)
{
    if (in_the_place_of(scheduler, fiber, like)) return NULL;
    put_off *one = calloc(1, sizeof(*one));
    if (!one) rb_memerror();
    one->pending = *like;
    one->pending.kept = fiber;
    one->pending.take = take_exception;
    one->pending.drop = drop_exception;
    hd_list_push_back(&scheduler->pending.exceptions, &one->node);
    hd_pending_add(&one->pending, scheduler, fiber);
    hd_pending_make_due(&one->pending);
    return &one->pending;
}

static uint64_t number_of(VALUE exception, ID name)
{
    VALUE number = rb_attr_get(exception, name);
    return RB_FIXNUM_P(number) ? (uint64_t)FIX2LONG(number) : 0;
}

void hd_pending_note_raised(const hd_scheduler *scheduler, VALUE exception, uint64_t began)
{
    if (OBJ_FROZEN(exception)) return;
    rb_ivar_set(exception, id_began, LONG2FIX((long)began));
    rb_ivar_set(exception, id_raised_at, LONG2FIX((long)scheduler->masks.sequence));
}

void hd_raise_later(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    hd_pending like = {.exception = exception, .began = number_of(exception, id_began)};
    /* The note marks an exception that was put off, perhaps long ago. Without it each would have to be searched for,
     * and the queues may be long. */
    if (put(scheduler, fiber, &like) && !OBJ_FROZEN(exception)) rb_ivar_set(exception, id_put_off, Qtrue);
}

void hd_raise_all_later(hd_scheduler *scheduler, VALUE exceptions)
{
    for (long i = 0; !NIL_P(exceptions) && i < RARRAY_LEN(exceptions); i++)
        hd_raise_later(scheduler, hd_root(scheduler), rb_ary_entry(exceptions, i));
}

void hd_pending_withdraw(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    for (hd_pending *pending = NULL; (pending = hd_pending_next(scheduler, fiber, pending));) {
        if (pending->limits || pending->exception != exception) continue;
        pending->drop(pending);
        return;
    }
}

void hd_pending_withdraw_everywhere(hd_scheduler *scheduler, VALUE exception)
{
    if (!OBJ_FROZEN(exception) && NIL_P(rb_attr_get(exception, id_put_off))) return;
    const hd_list *exceptions = &scheduler->pending.exceptions;
    for (hd_node *node = hd_list_first(exceptions), *next; node; node = next) {
        next = hd_list_after(exceptions, node);
        hd_pending *pending = &HD_CONTAINER_OF(node, put_off, node)->pending;
        if (pending->exception == exception) pending->drop(pending);
    }
}

/* -- what is on its way ---------------------------------------------------------------------------------------- */

enum { CAUSES_MAX = 100 };

void hd_pending_left_task(VALUE exception)
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
static bool is_being_ended(const hd_pending *pending)
{
    if (pending->forced || !(pending->limits || ends_something(pending->exception, pending->began))) return false;
    VALUE exception = rb_gv_get("$!");
    for (int i = 0; i < CAUSES_MAX && hd_is_exception(exception); i++) {
        uint64_t began = number_of(exception, id_began);
        bool raised = !NIL_P(rb_attr_get(exception, id_raised_at)) && ends_something(exception, began);
        if (raised && began <= pending->began && pending->began <= number_of(exception, id_raised_at)) return true;
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
    if (hd_wait_answered(wait)) return false; /* bytes were received */
    if (wait->state != HD_WAIT_READY || !(ready || closed)) return false;
    wait->wake = HD_WOKEN_BY_EXCEPTION;
    wait->exception = 0;
    return true;
}

static hd_mask mask_of(const hd_pending *pending, VALUE root, VALUE fiber)
{
    hd_recipient recipient = {root, fiber, pending->began, pending->limits};
    return pending->forced ? HD_MASK_IMMEDIATE : hd_interrupt_mask(pending->scheduler, recipient, pending->exception);
}

void hd_pending_deliver(hd_pending *pending)
{
    VALUE fiber = (VALUE)pending->fiber_node.key;
    hd_wait *wait = hd_wait_of_chain(pending->scheduler, fiber);
    if (!wait || mask_of(pending, fiber, (VALUE)hd_wait_fiber(wait)) == HD_MASK_NEVER) return;
    if (!hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION) && !pending->limits) gives_way(wait);
}

/* An exception that is due does not count. It has not ended the wait, so a mask holds it back, or its block is being
 * ended. */
static bool queue_limits(const hd_scheduler *scheduler, VALUE queue, const hd_wait *wait)
{
    hd_pending *pending = hd_pending_next(scheduler, queue, NULL);
    while (pending && (pending->due || mask_of(pending, queue, (VALUE)hd_wait_fiber(wait)) == HD_MASK_NEVER))
        pending = hd_pending_next(scheduler, queue, pending);
    return pending;
}

bool hd_pending_limits(const hd_scheduler *scheduler, const hd_wait *wait)
{
    return queue_limits(scheduler, (VALUE)wait->root, wait) ||
           queue_limits(scheduler, (VALUE)hd_wait_fiber(wait), wait);
}

void hd_raise_into(hd_scheduler *scheduler, VALUE fiber, hd_pending like)
{
    if (!hd_wait_of_chain(scheduler, fiber) && !RTEST(rb_fiber_alive_p(fiber))) return;
    hd_pending *pending = put(scheduler, fiber, &like);
    if (!pending) return;
    scheduler->counted.cancels += is_cancel(like.exception);
    hd_pending_deliver(pending);
}

/* Finds the pending exception that may be raised now and whose block is furthest out. Of several, it takes the first
 * that became due. */
static void look(const hd_scheduler *scheduler, VALUE queue, hd_mask strictest, hd_pending_choice choice,
                 hd_pending **first)
{
    VALUE fiber = rb_fiber_current();
    for (hd_pending *pending = NULL; (pending = hd_pending_next(scheduler, queue, pending));) {
        if (!pending->due || (choice == HD_TIMEOUTS_ONLY && !pending->limits)) continue;
        bool before = !*first || pending->began < (*first)->began ||
                      (pending->began == (*first)->began && pending->due < (*first)->due);
        if (before && mask_of(pending, queue, fiber) <= strictest && !is_being_ended(pending)) *first = pending;
    }
}

/* Takes it out of its queue. The exception knows from now on which block it ends. */
static VALUE take_out(hd_scheduler *scheduler, hd_pending *pending)
{
    uint64_t began = pending->began;
    VALUE exception = pending->take(pending);
    if (!RB_SPECIAL_CONST_P(exception)) hd_pending_note_raised(scheduler, exception, began);
    return exception;
}

void hd_pending_raise(hd_scheduler *scheduler, hd_mask strictest, hd_pending_choice choice)
{
    if (!scheduler->pending.due) return;
    VALUE root = hd_root(scheduler), fiber = rb_fiber_current();
    hd_pending *first = NULL;
    look(scheduler, root, strictest, choice, &first);
    if (fiber != root) look(scheduler, fiber, strictest, choice, &first);
    if (!first) return;
    VALUE exception = take_out(scheduler, first);
    if (RB_UNDEF_P(exception)) return;
    if (exception == HD_PENDING_KILL) rb_funcall(fiber, rb_intern("kill"), 0);
    rb_exc_raise(exception);
}

VALUE hd_pending_take_forced(hd_scheduler *scheduler)
{
    VALUE root = hd_root(scheduler);
    hd_pending *pending = hd_pending_next(scheduler, root, NULL);
    while (pending && !(pending->due && pending->forced)) pending = hd_pending_next(scheduler, root, pending);
    return pending ? take_out(scheduler, pending) : Qnil;
}

void hd_pending_drop(hd_scheduler *scheduler)
{
    if (!scheduler->pending.by_fiber.count) return;
    VALUE fiber = rb_fiber_current();
    for (hd_pending *left; (left = hd_pending_next(scheduler, fiber, NULL));) left->drop(left);
}

void hd_pending_deliver_all(hd_scheduler *scheduler)
{
    const hd_list *exceptions = &scheduler->pending.exceptions;
    for (hd_node *node = hd_list_first(exceptions); node; node = hd_list_after(exceptions, node)) {
        hd_pending *pending = &HD_CONTAINER_OF(node, put_off, node)->pending;
        hd_pending_deliver(pending);
    }
}

static void mark(hd_map_node *node, void *unused)
{
    const hd_pending *pending = HD_CONTAINER_OF(node, hd_pending, fiber_node);
    rb_gc_mark((VALUE)node->key); /* it is found by its address, which must stay */
    rb_gc_mark(pending->kept);
    rb_gc_mark(pending->exception);
}

void hd_pending_mark(const hd_scheduler *scheduler)
{
    if (scheduler->pending.by_fiber.buckets) hd_map_each(&scheduler->pending.by_fiber, mark, NULL);
}

static void free_exceptions(hd_scheduler *scheduler)
{
    for (hd_node *node; (node = hd_list_first(&scheduler->pending.exceptions));) {
        hd_node_remove(node);
        free(HD_CONTAINER_OF(node, put_off, node));
    }
}

void hd_pending_forget(hd_scheduler *scheduler)
{
    free_exceptions(scheduler);
    hd_map_forget(&scheduler->pending.by_fiber);
    scheduler->pending.due = scheduler->pending.timeouts_due = 0;
}

void hd_pending_free(hd_scheduler *scheduler)
{
    free_exceptions(scheduler);
    hd_map_free(&scheduler->pending.by_fiber);
}

/* -- home ----------------------------------------------------------------------------------------------------- */

void hd_raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    if (RTEST(rb_attr_get(error, rb_intern("@of_the_end")))) return; /* see Heddle::Cancelled.of_the_end */
    if (NIL_P(scheduler->home.fatal)) scheduler->home.fatal = error;
    scheduler->loop.check_interrupts = true;
}

void hd_init_pending(void)
{
    id_put_off = rb_intern("heddle_put_off");
    id_began = rb_intern("heddle_began");
    id_raised_at = rb_intern("heddle_raised_at");
    id_cause = rb_intern("cause"); /* where Ruby keeps an exception's cause */
}
