/* See lock_cycles.h. Ruby has no method that says who holds a Mutex, so the holder is read from its struct
 * (ruby_internals.h).
 *
 * To follow the holders at every wait for a lock would cost n steps for each of n waiters. So a wait only leaves a
 * note. The loop looks at all waits when it has nothing else to do, at most ten times in a second. */
#include "lock_cycles.h"

#include <stdlib.h>

#include "fibers/pending/pending.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "unblock_relay.h"

#define LOOK_NS (100 * HD_NS_PER_MS)

static VALUE cCompletion;

void hd_lock_wanted(hd_scheduler *scheduler, VALUE mutex)
{
    scheduler->locks.wanted = scheduler->locks.changed = true;
    VALUE root = hd_root(scheduler);
    if (RB_LIKELY(root == rb_fiber_current())) return;
    uintptr_t owner = hd_mutex_owner(mutex);
    if (owner && owner == hd_as_owner(root))
        rb_raise(rb_eThreadError, "deadlock; lock already owned by another fiber belonging to the same thread");
}

void hd_task_awaited(hd_scheduler *scheduler, VALUE queue)
{
    if (RB_UNLIKELY(scheduler->locks.wanted) && hd_is_a(queue, cCompletion)) scheduler->locks.changed = true;
}

/* -- circles --------------------------------------------------------------------------------------------------- */

/* A fiber that waits for a lock, or until tasks have ended. */
typedef struct {
    hd_wait *wait;
    size_t next;  /* the wait of the lock's holder; NONE: the holder waits for no lock */
    size_t round; /* the round in which it was visited; 0: none */
} waiter;

/* A fiber that may be a holder: the waiting fiber, or the fiber that has resumed it. */
typedef struct {
    uintptr_t owner;
    size_t waiter;
} holder;

typedef struct {
    hd_scheduler *scheduler;
    waiter *waiters;
    holder *holders;
    size_t count;
} lock_graph;

static const size_t NONE = SIZE_MAX;

/* Will the wait last until another fiber ends it? */
static bool lasts(const hd_scheduler *scheduler, const hd_wait *wait)
{
    return wait->state == HD_WAIT_PARKED && !hd_timer_set(&wait->timer) && !hd_pending_limits(scheduler, wait);
}

static bool is_for_lock(const hd_wait *wait)
{
    return wait->kind == HD_WAIT_FOR_BLOCK && hd_data_type((VALUE)wait->subject) == hd_mutex_type;
}

static bool is_for_tasks(const hd_wait *wait)
{
    return wait->kind == HD_WAIT_FOR_BLOCK && hd_is_a((VALUE)wait->subject, cCompletion);
}

static void add(hd_map_node *node, void *pointer)
{
    lock_graph *graph = pointer;
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    bool for_lock = is_for_lock(wait);
    graph->scheduler->locks.wanted |= for_lock;
    if (!for_lock && !is_for_tasks(wait)) return;
    if (!lasts(graph->scheduler, wait)) {
        graph->scheduler->locks.limited = true;
        return;
    }
    size_t number = graph->count++;
    graph->waiters[number] = (waiter){.wait = wait, .next = NONE};
    graph->holders[2 * number] = (holder){hd_as_owner((VALUE)hd_wait_fiber(wait)), number};
    graph->holders[2 * number + 1] = (holder){hd_as_owner((VALUE)wait->root), number};
}

static int by_owner(const void *one, const void *other)
{
    uintptr_t a = ((const holder *)one)->owner, b = ((const holder *)other)->owner;
    return (a > b) - (a < b);
}

static void connect_waiters(lock_graph *graph)
{
    qsort(graph->holders, graph->count * 2, sizeof(holder), by_owner);
    for (size_t i = 0; i < graph->count; i++) {
        const hd_wait *wait = graph->waiters[i].wait;
        holder wanted = {.owner = is_for_lock(wait) ? hd_mutex_owner((VALUE)wait->subject) : 0};
        if (!wanted.owner) continue;
        const holder *found = bsearch(&wanted, graph->holders, graph->count * 2, sizeof(holder), by_owner);
        if (found) graph->waiters[i].next = found->waiter;
    }
}

/* Follows the holders from here on. Returns a member of a circle that has not been found before, or NONE. */
static size_t find_circle(lock_graph *graph, size_t from)
{
    size_t at = from;
    for (; at != NONE && !graph->waiters[at].round; at = graph->waiters[at].next) graph->waiters[at].round = from + 1;
    return at != NONE && graph->waiters[at].round == from + 1 ? at : NONE;
}

/* Returns [[fiber, its root, the lock that it waits for], ...]. Each entry holds the lock of the one before. */
static VALUE members_of(const lock_graph *graph, size_t first)
{
    VALUE members = rb_ary_new();
    size_t at = first;
    do {
        const hd_wait *wait = graph->waiters[at].wait;
        VALUE fiber = (VALUE)hd_wait_fiber(wait);
        rb_ary_push(members, rb_ary_new_from_args(3, fiber, (VALUE)wait->root, (VALUE)wait->subject));
        at = graph->waiters[at].next;
    } while (at != first);
    return members;
}

/* Follows the holders. Adds the fiber that waits for a lock, if the last holder waits until tasks have ended, and
 * what that holder waits for. */
static void add_candidate(const lock_graph *graph, size_t from, VALUE candidates)
{
    const hd_wait *wait = graph->waiters[from].wait;
    size_t last = from;
    for (size_t steps = 0; graph->waiters[last].next != NONE; last = graph->waiters[last].next)
        if (steps++ > graph->count) return; /* a circle of locks */
    const hd_wait *last_wait = graph->waiters[last].wait;
    if (last == from || !is_for_tasks(last_wait)) return;
    VALUE fiber = (VALUE)hd_wait_fiber(wait), awaited = (VALUE)last_wait->subject;
    rb_ary_push(candidates, rb_ary_new_from_args(4, fiber, (VALUE)wait->root, (VALUE)wait->subject, awaited));
}

/* Finds the circles of locks. Adds to the candidates. */
static VALUE find_circles(hd_scheduler *scheduler, VALUE candidates)
{
    VALUE circles = rb_ary_new();
    size_t room = scheduler->reactor.waits.count;
    lock_graph graph = {scheduler, malloc(room * sizeof(waiter)), malloc(2 * room * sizeof(holder)), 0};
    if (graph.waiters && graph.holders) {
        scheduler->locks.wanted = scheduler->locks.limited = false;
        hd_map_each(&scheduler->reactor.waits, add, &graph);
        connect_waiters(&graph);
        for (size_t i = 0; i < graph.count; i++) {
            size_t found = find_circle(&graph, i);
            if (found != NONE) rb_ary_push(circles, members_of(&graph, found));
        }
        for (size_t i = 0; i < graph.count; i++) add_candidate(&graph, i, candidates);
    }
    free(graph.waiters);
    free(graph.holders);
    return circles;
}

/* Ends the waits of the members with a Deadlock. Making the error runs Ruby code, so a member may have gone on
 * meanwhile. */
static void end_waits(hd_scheduler *scheduler, VALUE members, const char *errors_of)
{
    VALUE errors = rb_funcall(scheduler->self, rb_intern(errors_of), 1, members);
    for (long i = 0; i < RARRAY_LEN(members); i++) {
        VALUE member = rb_ary_entry(members, i), error = rb_ary_entry(errors, i);
        hd_wait *wait = hd_wait_of(scheduler, rb_ary_entry(member, 0));
        if (NIL_P(error) || !wait || !lasts(scheduler, wait)) continue;
        if ((VALUE)wait->subject == rb_ary_entry(member, 2)) hd_end_operation(wait, error);
    }
    RB_GC_GUARD(errors);
}

bool hd_lock_cycles_due(const hd_scheduler *scheduler, int64_t *timeout_ns)
{
    int64_t left_ns = scheduler->locks.looked_ns + LOOK_NS - hd_clock_machine();
    if (left_ns <= 0 || scheduler->virtual_clock.on) return true; /* a virtual clock would pass over the circle */
    *timeout_ns = hd_earlier(*timeout_ns, left_ns);
    return false;
}

bool hd_lock_cycles_break(hd_scheduler *scheduler)
{
    scheduler->locks.changed = false;
    scheduler->locks.looked_ns = hd_clock_machine(); /* a handler that waits meanwhile does not look at once */
    VALUE candidates = rb_ary_new(), circles = find_circles(scheduler, candidates);
    long count = RARRAY_LEN(circles) + RARRAY_LEN(candidates);
    for (long i = 0; i < RARRAY_LEN(circles); i++)
        end_waits(scheduler, rb_ary_entry(circles, i), "lock_circle_errors");
    if (RARRAY_LEN(candidates)) end_waits(scheduler, candidates, "awaited_waiter_errors");
    RB_GC_GUARD(circles);
    RB_GC_GUARD(candidates);
    scheduler->locks.looked_ns = hd_clock_machine();
    return count > 0;
}

void hd_init_lock_cycles(void)
{
    cCompletion = rb_define_class_under(hd_mHeddle, "Completion", rb_path2class("Thread::Queue"));
    rb_gc_register_mark_object(cCompletion);
}
