/* Handing on what came too late (hand_over.h). A lock goes to the next in its line, an item to another fiber that
 * waits at the queue. What cannot be handed on, a signal say, is taken: the exception then comes at the fiber's next
 * wait. (Plain threads lose it: a Thread#kill and a Queue#push at the same moment leave the other poppers asleep.) */
#include "hand_over.h"

#include "park.h"

static VALUE cMutex, cQueue;

bool hd_is_a(VALUE object, VALUE class)
{
    return !hd_is_hidden(object) && RTEST(rb_obj_is_kind_of(object, class));
}

/* Unlocking wakes the next of Ruby's list. When it is locked again, its owner will. */
static void hand_on_lock(VALUE mutex)
{
    if (RTEST(rb_mutex_trylock(mutex))) rb_mutex_unlock(mutex);
}

typedef struct {
    VALUE queue;
    hd_wait *longest;
} queue_search;

static void match_queue(hd_map_node *node, void *pointer)
{
    queue_search *search = pointer;
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    bool waits = wait->state == HD_WAIT_PARKED && wait->kind == HD_WAIT_FOR_BLOCK;
    if (!waits || wait->subject != (hd_word)search->queue) return;
    if (!search->longest || wait->since_ns < search->longest->since_ns) search->longest = wait;
}

/* Whoever is woken looks at the queue by itself. Pushers and poppers of a SizedQueue look alike here: all are woken.
 * False: there are others, but not among the fibers of this scheduler. */
static bool hand_on_item(hd_scheduler *scheduler, VALUE queue)
{
    queue_search search = {.queue = queue};
    bool sized = rb_obj_class(queue) != cQueue, found = false;
    do {
        search.longest = NULL;
        hd_map_each(&scheduler->reactor.waits, match_queue, &search);
        found = found || search.longest;
    } while (search.longest && hd_wake_wait(search.longest, HD_WOKEN_BY_UNBLOCK, Qnil) && sized);
    return found || RTEST(rb_funcall(queue, rb_intern("closed?"), 0)) ||
           NUM2INT(rb_funcall(queue, rb_intern("num_waiting"), 0)) <= 1;
}

void hd_hand_over(hd_scheduler *scheduler, hd_wait *wait, VALUE blocker)
{
    if (wait->kind == HD_WAIT_FOR_BLOCK && wait->subject == (hd_word)blocker) {
        if (hd_is_a(blocker, cMutex)) {
            hand_on_lock(blocker);
            return;
        }
        /* One whose time is over looks into the queue once more; one that was woken gets its item. */
        if (hd_is_a(blocker, cQueue) && (wait->wake == HD_WOKEN_BY_TIMEOUT || hand_on_item(scheduler, blocker))) return;
    }
    hd_take_over(scheduler, wait);
}

void hd_init_hand_over(void)
{
    cMutex = rb_path2class("Thread::Mutex");
    cQueue = rb_path2class("Thread::Queue");
    rb_gc_register_mark_object(cMutex);
    rb_gc_register_mark_object(cQueue);
}
