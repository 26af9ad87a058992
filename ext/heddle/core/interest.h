/* Interests: the events of descriptors for which a wait waits in the kernel. */
#pragma once

#include <sys/types.h>

#include "wait.h"

/* A wait's interest in one descriptor. An IO wait has one, IO.select several. Fields with "given" are set by the caller
 * before it is armed, fields with "the answer" by the backend. */
struct hd_interest {
    hd_wait *wait;
    hd_map_node io_node; /* in reactor->ios while armed; its key is the descriptor */
    hd_word io;          /* the object that is waited on: a close wakes only the waiters of its object */
    hd_node fd_node;     /* for the backend */
    uint64_t token;      /* for the backend; 0 = the backend does not hold this interest */
    int fd;
    uint32_t armed_poll; /* reactor->polls when it was armed */
    bool at_once;        /* the answer: it was ready when the kernel was first asked */
    bool closing;        /* another object with this descriptor is being closed */
    bool leaving;        /* this object is being closed: the wait is over, its fiber has yet to run */
    bool selects;        /* given: ready in the sense of select(2), see hd_events_selected */
    bool unpollable;     /* given or found: the kernel cannot watch it (a file), and it is ready at any time */
    bool waits;          /* given: nothing is expected to be there yet */
    bool is_pipe;        /* given: it is no socket */
    size_t size;         /* given: how many bytes may be read for it, or sent, at most; 0: none */
    const char *bytes_to_send; /* given: the bytes to send; NULL: it reads */
    bool answered;       /* the answer: the bytes were read or sent, or that has failed */
    ssize_t result;      /* their number, 0 at the end, or -errno */
    const char *bytes;   /* where the bytes are that were read: see hd_interest_release */
    short events, revents; /* POLLIN, POLLPRI, POLLOUT: the values of IO::READABLE and so on */
};

/* Arms an interest of this wait in fd, on behalf of the IO object io. Returns 0 or -errno, as the backend's arm
 * does. */
int hd_interest_arm(hd_interest *interest, hd_wait *wait, hd_word io, int fd, short events);

/* Takes the interest back, whether it was delivered or not. It may receive bytes until then. */
void hd_interest_disarm(hd_interest *interest);

/* Frees the memory of the bytes, if any were delivered. Called after the disarm of this interest. */
void hd_interest_release(hd_interest *interest);

/* Delivers events that the backend has seen on the interest. The backend no longer holds the interest when it calls
 * this. */
void hd_interest_deliver(hd_interest *interest, short revents);

/* Delivers the bytes of an interest that wants some: they have been read or sent, or that has failed with -errno. */
void hd_interest_deliver_bytes(hd_interest *interest, const char *bytes, ssize_t result);

/* Has its read been answered: by bytes, by the end of the stream, or by an error? */
static inline bool hd_interest_received(const hd_interest *interest)
{
    return interest->answered && !interest->bytes_to_send;
}

/* Has an interest of this wait received what it wanted? */
bool hd_wait_answered(const hd_wait *wait);

/* Translates poll's answer for a wait in the sense of poll(2). An error or a hang-up ends every wait, requested or
 * not, and is reported as select(2) would (a hang-up is readable). 0: it is no answer for this wait. */
short hd_events_ready(short requested, short revents);

/* Translates poll's answer for a wait in the sense of select(2): only requested events end the wait. A hang-up is
 * readable, an error readable and writable. POLLNVAL: the descriptor is not open, or cannot be waited for. */
short hd_events_selected(short requested, short revents);

/* Translates poll's answer in the sense that the interest has asked for. */
short hd_interest_ready(const hd_interest *interest, short revents);
