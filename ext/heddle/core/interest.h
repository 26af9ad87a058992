/* What a wait waits for in the kernel: events of descriptors. */
#pragma once

#include <sys/types.h>

#include "wait.h"

/* A wait's interest in one descriptor. One for an IO wait, several for IO.select. */
struct hd_interest {
    hd_wait *wait;
    hd_map_node io_node; /* in reactor->ios while armed; its key is the descriptor */
    hd_word io;          /* the object that is waited on: a close wakes only its waiters */
    hd_node fd_node;     /* the backend's */
    uint64_t token;      /* the backend's; 0 = the backend does not hold this interest */
    int fd;
    uint32_t armed_poll; /* reactor->polls when it was armed */
    bool at_once;        /* the answer: it was ready when the kernel was first asked */
    bool closing;        /* another object with this descriptor is being closed */
    bool leaving;        /* this object is being closed: the wait is over, its fiber has yet to run */
    bool looks_again;    /* given: it is for a transfer, which begins anew when nothing is there */
    bool selects;        /* given: ready as select(2) says it, see hd_events_selected */
    bool unpollable;     /* given or found out: the kernel does not wait for it (a file), it never changes */
    size_t wanted;       /* given: at most so many bytes of a socket may be read for it, or sent; 0: none */
    const char *bytes_to_send; /* given: then it is those; NULL: it reads */
    bool brought;        /* the answer: they were read or sent, or that has failed */
    ssize_t result;      /* how many, 0 at the end, or -errno */
    const char *bytes;   /* where those are that were read: see hd_interest_release */
    short events, revents; /* POLLIN, POLLPRI, POLLOUT: the values of IO::READABLE and so on */
};

/* Arms an interest of this wait in fd, on behalf of the IO object io. 0 or -errno as backend arm. */
int hd_interest_arm(hd_interest *interest, hd_wait *wait, hd_word io, int fd, short events);

/* Takes the interest back, delivered or not. It may have brought bytes until then. */
void hd_interest_disarm(hd_interest *interest);

/* Gives the memory of the bytes back. Whoever disarms an interest calls it, too. */
void hd_interest_release(hd_interest *interest);

/* The backend has seen events on the interest (it no longer holds it when it calls this). */
void hd_interest_deliver(hd_interest *interest, short revents);

/* The same for one that wants bytes: they have been read, or sent, or that has failed with -errno. */
void hd_interest_deliver_bytes(hd_interest *interest, const char *bytes, ssize_t result);

/* Was something read for it, or the end, or an error? */
static inline bool hd_interest_landed(const hd_interest *interest)
{
    return interest->brought && !interest->bytes_to_send;
}

/* Has an interest of this wait brought what it wanted? */
bool hd_wait_brings(const hd_wait *wait);

/* What poll's answer means to who waits as poll(2) does: an error or hang-up ends every wait, and is told as what
 * select(2) makes of it (a hang-up is readable), requested or not. 0: it is no answer. */
short hd_events_ready(short requested, short revents);

/* What it means to who waits as select(2) does: only what was requested ends the wait. A hang-up is readable, an error
 * readable and writable. POLLNVAL: the descriptor is not open, or none to wait for. */
short hd_events_selected(short requested, short revents);

/* The one or the other. */
short hd_interest_ready(const hd_interest *interest, short revents);
