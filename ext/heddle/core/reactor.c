/* The reactor of reactor.h. */
#include "reactor.h"

#include "wait.h"

int hd_reactor_init(hd_reactor *reactor, hd_map *ios, unsigned generation)
{
    *reactor = (hd_reactor){.ios = ios, .generation = generation};
    hd_list_init(&reactor->ready);
    hd_list_init(&reactor->due);
    hd_list_init(&reactor->behind);
    hd_timers_init(&reactor->timers);
    hd_timers_init(&reactor->limits);
    reactor->now_ns = reactor->polled_ns = hd_clock_now();
    hd_reactor_begin_turn(reactor);
    int error = hd_map_init(&reactor->waits);
    return error ? error : hd_map_init(&reactor->chains);
}

int hd_reactor_open(hd_reactor *reactor, const hd_backend_ops *ops, bool pinned)
{
    HD_ASSERT(!reactor->backend);
    int error = ops->open(&reactor->backend, pinned);
    if (!error) reactor->ops = ops;
    return error;
}

void hd_reactor_attach(hd_reactor *reactor, const hd_backend_ops *ops, hd_backend *backend)
{
    HD_ASSERT(!reactor->backend);
    reactor->ops = ops;
    reactor->backend = backend;
}

hd_backend *hd_reactor_detach(hd_reactor *reactor)
{
    HD_ASSERT(reactor->armed == 0);
    hd_backend *backend = reactor->backend;
    reactor->backend = NULL;
    return backend;
}

void hd_reactor_close(hd_reactor *reactor)
{
    if (!reactor->backend) return;
    hd_backend *backend = reactor->backend;
    reactor->backend = NULL;
    reactor->armed = 0;
    reactor->ops->close(backend);
}

void hd_reactor_free(hd_reactor *reactor)
{
    hd_timers_free(&reactor->timers);
    hd_timers_free(&reactor->limits);
    hd_map_free(&reactor->waits);
    hd_map_free(&reactor->chains);
}

void hd_reactor_forget(hd_reactor *reactor, unsigned generation)
{
    hd_reactor_close(reactor);
    hd_list_init(&reactor->ready);
    hd_list_init(&reactor->due);
    hd_list_init(&reactor->behind);
    reactor->behind_count = 0;
    hd_timers_free(&reactor->timers);
    hd_timers_free(&reactor->limits);
    hd_map_forget(&reactor->waits);
    hd_map_forget(&reactor->chains);
    reactor->asleep = reactor->rests = false;
    reactor->received = 0;
    reactor->polls = reactor->wakes = 0;
    reactor->latency = (hd_histogram){.max_ns = 0};
    reactor->generation = generation;
}

static int64_t next_deadline(const hd_reactor *reactor)
{
    return hd_earlier(hd_timers_next(&reactor->timers), hd_timers_next(&reactor->limits));
}

void hd_reactor_shuffle(hd_reactor *reactor, uint64_t seed)
{
    reactor->rounds.on = true;
    reactor->rounds.random = seed;
}

void hd_reactor_jump(hd_reactor *reactor, int64_t now_ns)
{
    reactor->now_ns = reactor->polled_ns = now_ns;
    hd_reactor_fire(reactor, now_ns);
}

/* Have all fibers run that the last look at the kernel has woken? Then their writes go to the kernel together. */
static bool round_is_over(const hd_reactor *reactor)
{
    hd_node *first = hd_list_first(&reactor->ready);
    if (!first || !hd_list_empty(&reactor->due)) return false;
    return HD_CONTAINER_OF(first, hd_wait, ready_node)->order >= reactor->reaped_at;
}

bool hd_reactor_poll_due(hd_reactor *reactor)
{
    reactor->turns++;
    if (++reactor->switches >= HD_SWITCHES_PER_POLL) return true;
    if (reactor->writes && round_is_over(reactor)) return true;
    if (++reactor->switches_by_clock < reactor->switches_per_clock) return false;
    int64_t before_ns = reactor->now_ns;
    reactor->now_ns = hd_clock_now();
    bool long_runs = reactor->now_ns - before_ns >= HD_NS_PER_CLOCK * reactor->switches_by_clock;
    reactor->switches_per_clock = long_runs ? 1 : HD_SWITCHES_PER_CLOCK;
    reactor->switches_by_clock = 0;
    return reactor->now_ns - reactor->polled_ns >= HD_NS_PER_POLL || reactor->now_ns >= next_deadline(reactor);
}

void hd_reactor_begin_turn(hd_reactor *reactor)
{
    reactor->turn.began_ns = reactor->turn.looked_ns = reactor->now_ns;
    reactor->turn.operations = 0;
    reactor->turn.looked_at = HD_FIRST_LOOK - 1; /* the number of operations by then */
    reactor->turn.next_look = HD_FIRST_LOOK;
    reactor->turn.extended = false;
}

void hd_reactor_begin_turn_later(hd_reactor *reactor)
{
    hd_reactor_begin_turn(reactor);
    reactor->turn.began_ns = HD_NO_DEADLINE;
}

/* How long a turn may now last. */
static int64_t length_of_turn(const hd_reactor *reactor)
{
    if (reactor->behind_count <= HD_NS_PER_ROUND / HD_NS_PER_TURN) return HD_NS_PER_TURN;
    int64_t share_ns = HD_NS_PER_ROUND / (int64_t)reactor->behind_count;
    return share_ns > HD_NS_PER_TURN_AT_LEAST ? share_ns : HD_NS_PER_TURN_AT_LEAST;
}

bool hd_reactor_turn_is_over(hd_reactor *reactor)
{
    int64_t count = (int64_t)reactor->turn.operations - reactor->turn.looked_at;
    int64_t now_ns = hd_clock_now(), since_ns = now_ns - reactor->turn.looked_ns;
    bool short_ones = since_ns < HD_NS_PER_SHORT_OPERATION * count;
    reactor->now_ns = reactor->turn.looked_ns = now_ns;
    reactor->turn.looked_at = reactor->turn.operations;
    reactor->turn.next_look = reactor->turn.operations + (short_ones ? HD_OPERATIONS_PER_CLOCK : 1);
    if (reactor->turn.began_ns == HD_NO_DEADLINE) reactor->turn.began_ns = now_ns;
    bool used_up = now_ns - reactor->turn.began_ns >= length_of_turn(reactor);
    if (HD_UNLIKELY(reactor->rounds.on)) used_up = reactor->turn.operations >= HD_OPERATIONS_PER_VIRTUAL_TURN;
    if (!used_up) return false;
    bool polls = reactor->rounds.on || now_ns - reactor->polled_ns >= HD_NS_PER_POLL;
    polls = polls || now_ns >= next_deadline(reactor);
    if (polls) reactor->switches = HD_SWITCHES_PER_POLL;
    return polls || hd_reactor_has_ready(reactor);
}

int64_t hd_reactor_timeout(hd_reactor *reactor)
{
    if (hd_reactor_has_ready(reactor)) return 0;
    int64_t next_ns = next_deadline(reactor);
    reactor->now_ns = hd_clock_now();
    if (next_ns == HD_NO_DEADLINE) return HD_NO_DEADLINE;
    return next_ns > reactor->now_ns ? next_ns - reactor->now_ns : 0;
}

void hd_reactor_poll_nogvl(hd_reactor *reactor, int64_t timeout_ns)
{
    reactor->asked_ns = timeout_ns;
    reactor->ops->poll_nogvl(reactor->backend, timeout_ns, reactor->armed > 0);
}

/* Notes the latency of the loop. A poll that may wait begins when no fiber is ready. */
static void note_latency(hd_reactor *reactor, int64_t until_ns)
{
    int64_t since_ns = reactor->polled_ns;
    if (reactor->asked_ns == 0) since_ns = hd_earlier(since_ns, hd_ready_since(reactor));
    reactor->ran = false;
    hd_histogram_add(&reactor->latency, until_ns > since_ns ? until_ns - since_ns : 0);
}

void hd_reactor_reap(hd_reactor *reactor)
{
    reactor->polls++;
    reactor->switches = reactor->switches_by_clock = 0;
    reactor->writes = false;
    int64_t before_ns = reactor->now_ns, now_ns = hd_clock_now();
    int64_t until_ns = reactor->asked_ns == 0 ? now_ns : before_ns;
    if (reactor->ran) note_latency(reactor, until_ns);
    reactor->long_turns = until_ns - reactor->polled_ns >= reactor->long_turn_ns * (reactor->turns + 1);
    reactor->turns = 0;
    reactor->now_ns = reactor->polled_ns = now_ns;
    reactor->slept = reactor->asked_ns != 0 && reactor->now_ns - before_ns > HD_NS_SLEPT;
    reactor->ops->reap(reactor->backend);
    hd_reactor_fire(reactor, reactor->now_ns);
    reactor->reaped_at = reactor->sequence;
}

void hd_reactor_fire(hd_reactor *reactor, int64_t now_ns)
{
    for (;;) {
        int64_t wait_ns = hd_timers_next(&reactor->timers), limit_ns = hd_timers_next(&reactor->limits);
        int64_t next_ns = hd_earlier(wait_ns, limit_ns);
        if (next_ns > now_ns || next_ns == HD_NO_DEADLINE) return;
        hd_timers_fire_first(limit_ns <= wait_ns ? &reactor->limits : &reactor->timers);
    }
}

void hd_reactor_wake_if_asleep(hd_reactor *reactor)
{
    if (!reactor->asleep || !reactor->backend) return;
    reactor->asleep = false; /* one wake is enough until the owner sleeps again */
    reactor->wakes++;
    reactor->ops->wake(reactor->backend);
}
