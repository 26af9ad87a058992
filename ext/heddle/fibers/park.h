/* Parking: the current fiber stops until what it has asked for has come, and others run meanwhile.
 *
 * A fiber may resume others (an Enumerator, a plain Fiber), and one of those may park: then the one that the loop
 * had switched to, the root of the chain, is suspended too, and its timeouts and its cancellation strike where the
 * chain waits. */
#pragma once

#include "scheduler.h"

/* What a fiber waits for. The first of these ends the wait; so do a strike and, for some kinds, an unblock. */
typedef struct {
    hd_wait_kind kind;
    VALUE subject;          /* what it waits on, for reports */
    int64_t deadline_ns;    /* or HD_NO_DEADLINE */
    hd_interest *interests; /* descriptors: .fd, .events and .io (the object) are given, .revents is the answer */
    size_t interests_count;
    bool brings;            /* the first one wants bytes, or has some to send: see there */
    char *landing;          /* where the bytes are put that it has read */
    hd_job **jobs;          /* that have been submitted */
    size_t jobs_count;
    hd_job *job;            /* to be submitted now */
    /* HD_WAIT_YIELDED: it is ready at once, and stands there. In front it goes on as soon as whoever runs instead parks
     * or ends. */
    hd_place place;
    bool quiet; /* nothing is raised before it stops: the caller has something that would be lost */
    VALUE (*switch_away)(VALUE argument); /* NULL: the loop decides who runs */
    VALUE argument, *result;              /* of switch_away */
} hd_request;

/* Bytes that were read or sent while something else ended the wait are no less there, or gone: it has waited for that,
 * and what strikes the fiber strikes at its next wait. If the fiber cannot go on with those that were read, they are
 * put into Ruby's read buffer.
 *
 * Parks the current fiber; returns what has woken it, or -errno when the kernel or the pool of workers has refused the
 * request. Raises what strikes the fiber. */
int hd_park(hd_scheduler *scheduler, const hd_request *request);

/* The same for descriptors and jobs. 1: one of them is ready; 0: timed out; or -errno. */
static inline int hd_park_until_ready(hd_scheduler *scheduler, const hd_request *request)
{
    int wake = hd_park(scheduler, request);
    return wake < 0 ? wake : wake != HD_WOKEN_BY_TIMEOUT;
}

/* Lets the others that events have woken run first, and the first one of those whose turn was used up. */
void hd_yield(hd_scheduler *scheduler);
