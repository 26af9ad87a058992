/* See unblock_relay.h. A lock goes to the next fiber in its line, an item to another fiber that waits at the queue.
 * The signal of a ConditionVariable cannot be passed on. Then the wait ends as if no exception had come, and the
 * exception is raised at the fiber's next wait. Plain threads lose the item: a Thread#kill and a Queue#push at the same
 * moment leave the other poppers asleep. */
#include "unblock_relay.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

const rb_data_type_t *hd_mutex_type, *hd_thread_type;

static VALUE cQueue;

bool hd_is_a(VALUE object, VALUE class)
{
    return !hd_is_hidden(object) && RTEST(rb_obj_is_kind_of(object, class));
}

/* The record of a lock that is being handed on. */
struct hd_hand_over {
    VALUE mutex;
    bool again;                 /* an exception was raised in the next fiber of its line, too */
    struct hd_hand_over *outer; /* the record of another lock, or NULL */
};

static struct hd_hand_over *hand_over_of(const hd_scheduler *scheduler, VALUE mutex)
{
    struct hd_hand_over *one = scheduler->hand_over;
    while (one && one->mutex != mutex) one = one->outer;
    return one;
}

/* Unlocks the mutex, which wakes the next fiber of Ruby's list. If the mutex is locked again meanwhile, its owner
 * will do that. */
static VALUE unlock_once(VALUE mutex)
{
    if (RTEST(rb_mutex_trylock(mutex))) rb_mutex_unlock(mutex);
    return Qnil;
}

/* Hands a lock on. If the next fiber of Ruby's list has a pending exception as well, the unlock calls the hook,
 * which calls this function again. The inner call leaves the remaining work to the first call. So n cancelled
 * waiters need one level of the stack, not n. */
static void hand_on_lock(hd_scheduler *scheduler, VALUE mutex)
{
    struct hd_hand_over *outer = hand_over_of(scheduler, mutex), own = {.mutex = mutex, .outer = scheduler->hand_over};
    if (outer) {
        outer->again = true;
        return;
    }
    hd_caught first = {.exception = Qnil}, caught;
    scheduler->hand_over = &own;
    do {
        own.again = false;
        hd_catch(unlock_once, mutex, &caught);
        if (caught.state && !first.state) first = caught;
    } while (own.again);
    scheduler->hand_over = own.outer;
    hd_go_on(&first);
}

/* The fibers that wait at a queue, the longest wait first. The list is valid until a fiber begins to wait, because
 * then others may have come. So one look at all waits is enough to hand on the items of n fibers that are cancelled
 * together. */
struct hd_line {
    VALUE queue;
    unsigned parks; /* the scheduler's count when the line was made */
    size_t next, count;
    struct place {
        int64_t since_ns;
        VALUE fiber;
    } places[];
};

static bool waits_at(const hd_wait *wait, VALUE queue)
{
    return wait->state == HD_WAIT_PARKED && wait->kind == HD_WAIT_FOR_BLOCK && wait->subject == (hd_word)queue;
}

static void queue_up(hd_map_node *node, void *pointer)
{
    struct hd_line *line = pointer;
    const hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    if (waits_at(wait, line->queue))
        line->places[line->count++] = (struct place){wait->since_ns, (VALUE)hd_wait_fiber(wait)};
}

static int by_time(const void *one, const void *other)
{
    int64_t a = ((const struct place *)one)->since_ns, b = ((const struct place *)other)->since_ns;
    return (a > b) - (a < b);
}

/* Returns the line at this queue; NULL: there is no memory for it. */
static struct hd_line *line_at(hd_scheduler *scheduler, VALUE queue)
{
    struct hd_line *line = scheduler->line;
    if (line && line->queue == queue && line->parks == scheduler->running.parks) return line;
    free(line);
    line = scheduler->line = malloc(sizeof(*line) + scheduler->reactor.waits.count * sizeof(struct place));
    if (!line) return NULL;
    *line = (struct hd_line){.queue = queue, .parks = scheduler->running.parks};
    hd_map_each(&scheduler->reactor.waits, queue_up, line);
    qsort(line->places, line->count, sizeof(struct place), by_time);
    return line;
}

typedef struct {
    VALUE queue;
    hd_wait *longest;
} queue_search;

static void match_queue(hd_map_node *node, void *pointer)
{
    queue_search *search = pointer;
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    if (!waits_at(wait, search->queue)) return;
    if (!search->longest || wait->since_ns < search->longest->since_ns) search->longest = wait;
}

static hd_wait *longest_at(hd_scheduler *scheduler, VALUE queue)
{
    queue_search search = {.queue = queue};
    hd_map_each(&scheduler->reactor.waits, match_queue, &search);
    return search.longest;
}

/* Takes the next fiber of the line that still waits. A fiber of the line may have been woken since, or have ended;
 * none that was made since can wait. */
static hd_wait *next_in_line(hd_scheduler *scheduler, VALUE queue)
{
    struct hd_line *line = line_at(scheduler, queue);
    if (!line) return longest_at(scheduler, queue);
    while (line->next < line->count) {
        hd_map *waits = &scheduler->reactor.waits; /* a fiber has several waits when its signal handler waits */
        hd_map_node *node = hd_map_find(waits, (hd_word)line->places[line->next++].fiber);
        for (; node; node = hd_map_find_next(waits, node)) {
            hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
            if (waits_at(wait, queue)) return wait;
        }
    }
    return NULL;
}

/* Hands an item on. Each woken fiber looks at the queue by itself. Pushers and poppers of a SizedQueue look alike
 * here, so all are woken. False: others wait, but they are not among the fibers of this scheduler. */
static bool hand_on_item(hd_scheduler *scheduler, VALUE queue)
{
    bool sized = rb_obj_class(queue) != cQueue, found = false;
    hd_wait *next;
    while ((sized || !found) && (next = next_in_line(scheduler, queue)))
        found = hd_wake_wait(next, HD_WOKEN_BY_UNBLOCK);
    return found || RTEST(rb_funcall(queue, rb_intern("closed?"), 0)) ||
           NUM2INT(rb_funcall(queue, rb_intern("num_waiting"), 0)) <= 1;
}

void hd_relay_wake(hd_scheduler *scheduler, const hd_wait *wait)
{
    if (wait->kind != HD_WAIT_FOR_BLOCK) return;
    VALUE blocker = (VALUE)wait->subject;
    if (hd_data_type(blocker) == hd_mutex_type) hand_on_lock(scheduler, blocker);
    if (hd_is_a(blocker, cQueue)) hand_on_item(scheduler, blocker);
}

void hd_relay_unblock(hd_scheduler *scheduler, hd_wait *wait, VALUE blocker)
{
    if (wait->kind == HD_WAIT_FOR_BLOCK && wait->subject == (hd_word)blocker) {
        if (hd_data_type(blocker) == hd_mutex_type) {
            hand_on_lock(scheduler, blocker);
            return;
        }
        /* A fiber whose time is over looks into the queue once more. A fiber that was woken gets its item. */
        if (hd_is_a(blocker, cQueue) && (wait->wake == HD_WOKEN_BY_TIMEOUT || hand_on_item(scheduler, blocker))) return;
    }
    hd_unblock_instead(scheduler, wait);
}

void hd_init_unblock_relay(void)
{
    hd_mutex_type = RTYPEDDATA_TYPE(rb_mutex_new());
    hd_thread_type = RTYPEDDATA_TYPE(rb_thread_current());
    cQueue = rb_path2class("Thread::Queue");
    rb_gc_register_mark_object(cQueue);
}
