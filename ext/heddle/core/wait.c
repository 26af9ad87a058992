/* Every transition of the wait record; see wait.h. */
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
    wait->sliced = false;
    wait->interests = NULL;
    wait->interests_count = 0;
    wait->since_ns = wait->ready_ns = reactor->now_ns;
    wait->generation = reactor->generation;
    wait->timer.slot = 0;
    wait->place = HD_IN_LINE;
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

static void stand_behind(hd_wait *wait)
{
    hd_reactor *reactor = wait->reactor;
    if (reactor->behind_count++ == 0) reactor->behind_ns = reactor->now_ns;
    hd_list_push_back(&reactor->behind, &wait->ready_node);
}

static void leave_queue(hd_wait *wait)
{
    hd_node_remove(&wait->ready_node);
    if (wait->place == HD_BEHIND) wait->reactor->behind_count--;
}

void hd_wait_begin_ready(hd_wait *wait, hd_reactor *reactor, hd_word fiber, hd_place place)
{
    initialize(wait, reactor, HD_WAIT_YIELDED, fiber);
    wait->state = HD_WAIT_READY;
    wait->wake = HD_WOKEN_BY_EVENT;
    wait->place = place;
    if (place == HD_BEHIND)
        stand_behind(wait);
    else if (place == HD_IN_FRONT)
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

/* Finds the first wait that stands in front, or that an event has woken; or NULL. */
static hd_wait *first_woken(hd_reactor *reactor)
{
    hd_wait *ready = first_of(&reactor->ready), *due = first_of(&reactor->due);
    bool in_front = ready && ready->place == HD_IN_FRONT;
    bool overtakes = due && !(ready && (reactor->due_was_last || in_front || ready->order < due->order));
    reactor->due_was_last = overtakes;
    return overtakes ? due : ready;
}

/* Has the first wait of those behind been passed over for long enough? */
static bool passed_over(const hd_reactor *reactor)
{
    const hd_wait *ready = first_of(&reactor->ready);
    if (ready && ready->place == HD_IN_FRONT) return false;
    return reactor->now_ns - reactor->behind_ns >= HD_NS_PASSED_OVER;
}

/* Has the next fiber yielded to the first one behind? It does so only once. */
static bool yields_to(hd_wait *next, const hd_wait *behind)
{
    if (next->place != HD_YIELDS) return false;
    next->place = HD_IN_LINE;
    return behind->order < next->order;
}

/* The next number of SplitMix64. */
static uint64_t random_number(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t move_all(hd_list *from, hd_list *to)
{
    size_t count = 0;
    for (hd_node *node; (node = hd_list_first(from)); count++) {
        hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, ready_node);
        leave_queue(wait);
        wait->place = HD_IN_LINE;
        hd_list_push_back(to, node);
    }
    return count;
}

/* Makes one round of all ready waits, in a random order. Without memory for that, they stay as they are. */
static void begin_round(hd_reactor *reactor)
{
    hd_list all;
    hd_list_init(&all);
    size_t count = move_all(&reactor->ready, &all);
    count += move_all(&reactor->due, &all);
    count += move_all(&reactor->behind, &all);
    reactor->rounds.left = count;
    hd_node **nodes = count > 1 ? malloc(count * sizeof(*nodes)) : NULL;
    for (size_t i = 0; nodes && i < count; i++) {
        hd_node_remove(nodes[i] = hd_list_first(&all));
        size_t other = random_number(&reactor->rounds.random) % (i + 1);
        hd_node *last = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = last;
    }
    for (size_t i = 0; nodes && i < count; i++) hd_list_push_back(&all, nodes[i]);
    free(nodes);
    move_all(&all, &reactor->ready);
}

/* Finds the next wait of the round. A wait that stands in front belongs to none. */
static hd_wait *next_of_round(hd_reactor *reactor)
{
    hd_wait *first = first_of(&reactor->ready);
    if (first && first->place == HD_IN_FRONT) return first;
    if (!first || !reactor->rounds.left) begin_round(reactor);
    first = first_of(&reactor->ready);
    if (!first) return NULL;
    reactor->rounds.left--;
    return first;
}

static hd_wait *take(hd_reactor *reactor, hd_wait *wait)
{
    reactor->ran = true;
    HD_ASSERT(wait->state == HD_WAIT_READY);
    leave_queue(wait);
    wait->state = HD_WAIT_DONE;
    if (wait->place != HD_IN_FRONT) hd_reactor_begin_turn(reactor);
    return wait;
}

hd_wait *hd_next_ready(hd_reactor *reactor)
{
    if (HD_UNLIKELY(reactor->rounds.on)) {
        hd_wait *next = next_of_round(reactor);
        reactor->rounds.taken += next != NULL;
        return next ? take(reactor, next) : NULL;
    }
    if (reactor->behind_was_last) reactor->behind_ns = reactor->now_ns; /* its own turn does not count for the others */
    hd_wait *behind = first_of(&reactor->behind);
    hd_wait *wait = behind && passed_over(reactor) ? NULL : first_woken(reactor);
    bool again = reactor->behind_was_last; /* a fiber that yields lets one of those behind run, not two in a row */
    if (behind && (!wait || (!again && yields_to(wait, behind)))) wait = behind;
    if (!wait) return NULL;
    reactor->behind_was_last = wait == behind;
    return take(reactor, wait);
}

void hd_wait_go_on(hd_wait *wait)
{
    if (wait->state == HD_WAIT_READY) take(wait->reactor, wait);
}

int64_t hd_ready_since(const hd_reactor *reactor)
{
    const hd_wait *firsts[] = {first_of(&reactor->ready), first_of(&reactor->due), first_of(&reactor->behind)};
    int64_t since_ns = HD_NO_DEADLINE;
    for (int i = 0; i < 3; i++)
        if (firsts[i] && firsts[i]->place != HD_IN_FRONT) since_ns = hd_earlier(since_ns, firsts[i]->ready_ns);
    return since_ns;
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
    if (hd_node_linked(&wait->ready_node)) leave_queue(wait);
    if (hd_timer_set(&wait->timer)) hd_timers_remove(&wait->reactor->timers, &wait->timer);
    if (hd_map_node_linked(&wait->fiber_node)) {
        /* A signal handler may wait on top of another wait of its fiber: the last one ends first. */
        HD_VERIFY(!hd_map_find_next(&wait->reactor->waits, &wait->fiber_node));
        hd_map_remove(&wait->reactor->waits, &wait->fiber_node);
    }
    if (hd_map_node_linked(&wait->root_node)) hd_map_remove(&wait->reactor->chains, &wait->root_node);
    wait->state = HD_WAIT_DONE;
}
