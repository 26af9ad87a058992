/* Arms, disarms and answers interests; see interest.h. */
#include "interest.h"

#include <errno.h>
#include <poll.h>

int hd_interest_arm(hd_interest *interest, hd_wait *wait, hd_word io, int fd, short events)
{
    hd_reactor *reactor = wait->reactor;
    interest->wait = wait;
    interest->fd = fd;
    interest->events = events;
    interest->revents = 0;
    interest->io = io;
    interest->answered = false;
    interest->bytes = NULL;
    interest->at_once = interest->closing = interest->leaving = false;
    interest->armed_poll = (uint32_t)reactor->polls;
    interest->token = 0;
    hd_node_init(&interest->fd_node);
    hd_node_init(&interest->io_node.node);
    int error = interest->unpollable ? -EPERM : reactor->ops->arm(reactor->backend, interest);
    /* a wait that does not select gets the error, and knows by it that the descriptor is always ready */
    interest->unpollable = error == -EPERM && interest->selects;
    if (error && !interest->unpollable) return error;
    if (!error) reactor->armed++;
    hd_map_add(reactor->ios, &interest->io_node, (hd_word)fd);
    return 0;
}

void hd_interest_disarm(hd_interest *interest)
{
    hd_reactor *reactor = interest->wait->reactor;
    if (hd_wait_void(interest->wait)) return;
    if (interest->token && reactor->backend) {
        reactor->ops->disarm(reactor->backend, interest);
        reactor->armed -= interest->token != 0; /* 0: it has just received bytes */
        interest->token = 0;
    }
    if (!hd_map_node_linked(&interest->io_node)) return;
    hd_map_remove(reactor->ios, &interest->io_node);
    if (hd_interest_received(interest)) reactor->received--;
}

void hd_interest_release(hd_interest *interest)
{
    hd_reactor *reactor = interest->wait->reactor;
    if (!interest->bytes || hd_wait_void(interest->wait)) return;
    HD_ASSERT(!interest->token);
    if (reactor->backend) reactor->ops->release_bytes(reactor->backend, interest->bytes);
    interest->bytes = NULL;
}

void hd_interest_deliver(hd_interest *interest, short revents)
{
    HD_ASSERT(interest->token != 0);
    hd_reactor *reactor = interest->wait->reactor;
    interest->token = 0;
    reactor->answers++;
    interest->at_once = interest->armed_poll + 1 == (uint32_t)reactor->polls && !reactor->slept;
    reactor->armed--;
    interest->revents |= hd_interest_ready(interest, revents);
    hd_wait_settle(interest->wait, HD_WOKEN_BY_EVENT);
}

void hd_interest_deliver_bytes(hd_interest *interest, const char *bytes, ssize_t result)
{
    HD_ASSERT(interest->size > 0 && result <= (ssize_t)interest->size);
    HD_ASSERT(result <= 0 || bytes || interest->bytes_to_send);
    interest->answered = true;
    interest->bytes = bytes;
    interest->result = result;
    if (hd_interest_received(interest)) interest->wait->reactor->received++;
    hd_interest_deliver(interest, interest->bytes_to_send ? POLLOUT : POLLIN);
}

bool hd_wait_answered(const hd_wait *wait)
{
    return wait->interests_count == 1 && wait->interests->answered;
}

/* Returns the sets of select(2) that poll's answer belongs to, as the Linux kernel does (fs/select.c). Ruby's own
 * IO#wait does this with poll's answer, too. */
static short sets_of(short revents)
{
    short readable = revents & (POLLIN | POLLHUP | POLLERR) ? POLLIN : 0;
    short writable = revents & (POLLOUT | POLLERR) ? POLLOUT : 0;
    return (short)(readable | writable | (revents & POLLPRI));
}

short hd_events_ready(short requested, short revents)
{
    if (revents & POLLNVAL) return requested;
    return sets_of((short)(revents & (requested | POLLERR | POLLHUP)));
}

short hd_events_selected(short requested, short revents)
{
    return revents & POLLNVAL ? POLLNVAL : (short)(sets_of(revents) & requested);
}

short hd_interest_ready(const hd_interest *interest, short revents)
{
    return interest->selects ? hd_events_selected(interest->events, revents)
                             : hd_events_ready(interest->events, revents);
}
