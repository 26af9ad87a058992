/* See read_ahead.h. */
#include "read_ahead.h"

#include <poll.h>

#include "fibers/pending/pending.h"
#include "ruby/ruby_internals.h"

bool hd_reads_from(const hd_interest *interest, VALUE io)
{
    const hd_wait *wait = interest->wait;
    if (interest->io != (hd_word)io || !(interest->events & POLLIN) || interest->leaving) return false;
    if (wait->state == HD_WAIT_PARKED) return true;
    return wait->state == HD_WAIT_READY && wait->wake == HD_WOKEN_BY_EVENT && interest->revents & POLLIN;
}

void hd_wake_readers(hd_scheduler *scheduler, VALUE io, int fd)
{
    hd_map_node *node = hd_map_find(scheduler->reactor.ios, (hd_word)fd);
    for (; node; node = hd_map_find_next(scheduler->reactor.ios, node)) {
        hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, io_node);
        if (!hd_reads_from(interest, io) || interest->wait->state != HD_WAIT_PARKED) continue;
        interest->revents = POLLIN;
        hd_wake_wait(interest->wait, HD_WOKEN_BY_EVENT);
    }
}

void hd_put_back(hd_scheduler *scheduler, const hd_interest *interest, const char *bytes)
{
    hd_io_put_back((VALUE)interest->io, bytes, (size_t)interest->result);
    hd_after_read_ahead(scheduler, (VALUE)interest->io, interest->fd);
}
