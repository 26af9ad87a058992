/* The reactor of reactor.h. */
#include "reactor.h"

#include <errno.h>

int hd_reactor_init(hd_reactor *reactor, hd_map *ios, unsigned generation)
{
    *reactor = (hd_reactor){.ios = ios, .generation = generation};
    hd_list_init(&reactor->ready);
    hd_timers_init(&reactor->timers);
    hd_timers_init(&reactor->limits);
    reactor->now_ns = reactor->polled_ns = hd_clock_now();
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
    hd_timers_free(&reactor->timers);
    hd_timers_free(&reactor->limits);
    hd_map_forget(&reactor->waits);
    hd_map_forget(&reactor->chains);
    reactor->asleep = false;
    reactor->generation = generation;
}

hd_wait *hd_reactor_next(hd_reactor *reactor)
{
    hd_node *node = hd_list_first(&reactor->ready);
    if (!node) return NULL;
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, ready_node);
    hd_wait_take(wait);
    return wait;
}

bool hd_reactor_poll_due(hd_reactor *reactor)
{
    if (++reactor->switches >= HD_SWITCHES_PER_POLL) return true;
    /* The clock costs as much as a switch: it is asked for at every fourth. */
    if (reactor->switches % 4) return false;
    reactor->now_ns = hd_clock_now();
    return reactor->now_ns - reactor->polled_ns >= HD_NS_PER_POLL;
}

int64_t hd_reactor_timeout(hd_reactor *reactor)
{
    if (!hd_list_empty(&reactor->ready)) return 0;
    int64_t next_ns = hd_earlier(hd_timers_next(&reactor->timers), hd_timers_next(&reactor->limits));
    reactor->now_ns = hd_clock_now();
    if (next_ns == HD_NO_DEADLINE) return HD_NO_DEADLINE;
    return next_ns > reactor->now_ns ? next_ns - reactor->now_ns : 0;
}

void hd_reactor_poll_nogvl(hd_reactor *reactor, int64_t timeout_ns)
{
    reactor->asked_ns = timeout_ns;
    reactor->ops->poll_nogvl(reactor->backend, timeout_ns);
}

void hd_reactor_reap(hd_reactor *reactor)
{
    reactor->polls++;
    reactor->switches = 0;
    int64_t before_ns = reactor->now_ns;
    reactor->now_ns = reactor->polled_ns = hd_clock_now();
    reactor->slept = reactor->asked_ns != 0 && reactor->now_ns - before_ns > HD_NS_SLEPT;
    reactor->ops->reap(reactor->backend);
    hd_reactor_fire(reactor, reactor->now_ns);
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

void hd_reactor_poll_now(hd_reactor *reactor)
{
    hd_reactor_poll_nogvl(reactor, 0);
    hd_reactor_reap(reactor);
}

void hd_reactor_wake_if_asleep(hd_reactor *reactor)
{
    if (!reactor->asleep || !reactor->backend) return;
    reactor->asleep = false; /* one wake is enough until the owner sleeps again */
    reactor->wakes++;
    reactor->ops->wake(reactor->backend);
}

int hd_interest_arm(hd_interest *interest, hd_wait *wait, hd_word io, int fd, short events)
{
    hd_reactor *reactor = wait->reactor;
    interest->wait = wait;
    interest->fd = fd;
    interest->events = events;
    interest->revents = 0;
    interest->io = io;
    interest->at_once = interest->closing = interest->leaving = false;
    interest->armed_poll = (uint32_t)reactor->polls;
    interest->token = 0;
    hd_node_init(&interest->fd_node);
    hd_node_init(&interest->io_node.node);
    int error = interest->unpollable ? -EPERM : reactor->ops->arm(reactor->backend, interest);
    interest->unpollable = error == -EPERM && interest->selects; /* others know by the error that it is always ready */
    if (error && !interest->unpollable) return error;
    if (!error) reactor->armed++;
    hd_map_add(reactor->ios, &interest->io_node, (hd_word)fd);
    return 0;
}

void hd_interest_disarm(hd_interest *interest)
{
    hd_reactor *reactor = interest->wait->reactor;
    if (hd_wait_void(interest->wait)) return;
    if (hd_map_node_linked(&interest->io_node)) hd_map_remove(reactor->ios, &interest->io_node);
    if (!interest->token || !reactor->backend) return;
    reactor->ops->disarm(reactor->backend, interest);
    interest->token = 0;
    reactor->armed--;
}

void hd_interest_deliver(hd_interest *interest, short revents)
{
    HD_ASSERT(interest->token != 0);
    hd_reactor *reactor = interest->wait->reactor;
    interest->token = 0;
    interest->at_once = interest->armed_poll + 1 == (uint32_t)reactor->polls && !reactor->slept;
    reactor->armed--;
    interest->revents |= hd_interest_ready(interest, revents);
    hd_wait_settle(interest->wait, HD_WOKEN_BY_EVENT);
}
