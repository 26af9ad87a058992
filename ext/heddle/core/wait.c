/* Every transition of the wait record. */
#include "wait.h"

static void wait_timed_out(hd_timer *timer)
{
    hd_wait_settle(HD_CONTAINER_OF(timer, hd_wait, timer), HD_WOKEN_BY_TIMEOUT);
}

static void initialize(hd_wait *wait, hd_reactor *reactor, hd_wait_kind kind, hd_word fiber)
{
    wait->reactor = reactor;
    wait->kind = kind;
    wait->wake = HD_WOKEN_NOT;
    wait->exception = 0;
    wait->interests = NULL;
    wait->interests_count = 0;
    wait->since_ns = wait->ready_ns = reactor->now_ns;
    wait->generation = reactor->generation;
    wait->timer.slot = 0;
    wait->in_front = false;
    wait->order = reactor->sequence++;
    wait->timer.fire = wait_timed_out;
    hd_node_init(&wait->ready_node);
    wait->root = fiber;
    hd_node_init(&wait->root_node.node);
    hd_node_init(&wait->fiber_node.node);
    hd_map_add(&reactor->waits, &wait->fiber_node, fiber);
}

int hd_wait_begin(hd_wait *wait, hd_reactor *reactor, hd_wait_kind kind, hd_word fiber, int64_t deadline_ns)
{
    initialize(wait, reactor, kind, fiber);
    wait->state = HD_WAIT_PARKED;
    if (deadline_ns == HD_NO_DEADLINE) return 0;
    int error = hd_timers_add(&reactor->timers, &wait->timer, deadline_ns);
    if (error) hd_wait_end(wait);
    return error;
}

void hd_wait_begin_ready(hd_wait *wait, hd_reactor *reactor, hd_word fiber, bool front)
{
    initialize(wait, reactor, HD_WAIT_YIELDED, fiber);
    wait->state = HD_WAIT_READY;
    wait->wake = HD_WOKEN_BY_EVENT;
    wait->in_front = front;
    if (front)
        hd_list_push_front(&reactor->ready, &wait->ready_node);
    else
        hd_list_push_back(&reactor->ready, &wait->ready_node);
}

void hd_wait_for_root(hd_wait *wait, hd_word root)
{
    wait->root = root;
    if (root != hd_wait_fiber(wait)) hd_map_add(&wait->reactor->chains, &wait->root_node, root);
}

bool hd_wait_settle(hd_wait *wait, hd_wake wake)
{
    if (wait->state != HD_WAIT_PARKED) return false;
    HD_ASSERT(!hd_node_linked(&wait->ready_node));
    if (hd_timer_set(&wait->timer)) hd_timers_remove(&wait->reactor->timers, &wait->timer);
    wait->state = HD_WAIT_READY;
    wait->wake = wake;
    wait->ready_ns = wait->reactor->rests ? hd_clock_now() : wait->reactor->now_ns;
    bool due = wake == HD_WOKEN_BY_TIMEOUT;
    if (!due) wait->order = wait->reactor->sequence++;
    hd_list_push_back(due ? &wait->reactor->due : &wait->reactor->ready, &wait->ready_node);
    return true;
}

bool hd_wait_unblock_instead(hd_wait *wait, hd_word *displaced)
{
    *displaced = 0;
    if (wait->wake != HD_WOKEN_BY_EXCEPTION && wait->wake != HD_WOKEN_BY_TIMEOUT) return false;
    *displaced = wait->exception;
    wait->exception = 0;
    wait->wake = HD_WOKEN_BY_UNBLOCK;
    return true;
}

static hd_wait *first_of(const hd_list *queue)
{
    hd_node *node = hd_list_first(queue);
    return node ? HD_CONTAINER_OF(node, hd_wait, ready_node) : NULL;
}

hd_wait *hd_next_ready(hd_reactor *reactor)
{
    hd_wait *ready = first_of(&reactor->ready), *due = first_of(&reactor->due);
    bool overtakes = due && !(ready && (reactor->due_was_last || ready->in_front || ready->order < due->order));
    hd_wait *wait = overtakes ? due : ready;
    if (!wait) return NULL;
    reactor->due_was_last = overtakes;
    reactor->ran = true;
    HD_ASSERT(wait->state == HD_WAIT_READY);
    hd_node_remove(&wait->ready_node);
    wait->state = HD_WAIT_DONE;
    return wait;
}

int64_t hd_ready_since(const hd_reactor *reactor)
{
    const hd_wait *ready = first_of(&reactor->ready), *due = first_of(&reactor->due);
    int64_t ready_ns = ready && !ready->in_front ? ready->ready_ns : HD_NO_DEADLINE;
    return hd_earlier(ready_ns, due ? due->ready_ns : HD_NO_DEADLINE);
}

bool hd_wait_void(const hd_wait *wait)
{
    return wait->generation != wait->reactor->generation;
}

void hd_wait_end(hd_wait *wait)
{
    if (hd_wait_void(wait)) {
        wait->state = HD_WAIT_DONE;
        return;
    }
    if (hd_node_linked(&wait->ready_node)) hd_node_remove(&wait->ready_node);
    if (hd_timer_set(&wait->timer)) hd_timers_remove(&wait->reactor->timers, &wait->timer);
    if (hd_map_node_linked(&wait->fiber_node)) {
        /* A signal handler may wait on top of another wait of its fiber: the last one ends first. */
        HD_VERIFY(!hd_map_find_next(&wait->reactor->waits, &wait->fiber_node));
        hd_map_remove(&wait->reactor->waits, &wait->fiber_node);
    }
    if (hd_map_node_linked(&wait->root_node)) hd_map_remove(&wait->reactor->chains, &wait->root_node);
    wait->state = HD_WAIT_DONE;
}
