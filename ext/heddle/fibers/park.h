/* PARK AND WAKE: the current fiber stops until its request is fulfilled, and other fibers run meanwhile.
 *
 * Problem: events, timers, unblocks, cancels and closes may all come for one wait, and each may come late. A wake
 * that reached the fiber's next wait instead would be a lost or a false answer. Way: each wait has a record of its
 * own (core/wait.h), on the C stack of its fiber. A wake is its one transition from PARKED to READY. Anything that
 * comes later finds a record that is not parked, or no record, and does nothing. The kernel has a token of slot and
 * generation, never the address of a record.
 *
 * Rejected: Fiber.yield, because the consumer of an Enumerator would take it for a value.
 *
 * Price: whatever comes at a switch must be held back until the record is unlinked, and requests that were not
 * answered must be taken back.
 *
 * A fiber may resume others (an Enumerator, a plain Fiber), and one of those may park. The fiber that the loop had
 * switched to, the root of the chain, is suspended too. A timeout or a cancel of the root is then raised where the
 * chain waits.
 *
 * Sources: guides/design.md, "Woken exactly once". */
#pragma once

#include <poll.h>

#include "scheduler.h"

/* A request: what a fiber waits for. The first event ends the wait. So do a pending exception and, for some kinds,
 * an unblock. */
typedef struct {
    hd_wait_kind kind;
    VALUE subject;          /* the object that it waits on, for reports */
    int64_t deadline_ns;    /* or HD_NO_DEADLINE */
    hd_interest *interests; /* descriptors: .fd, .events and .io (the object) are given, .revents is the answer */
    size_t interests_count;
    bool moves_bytes;       /* the first interest wants bytes, or has some to send: see hd_interest */
    char *read_memory;      /* where the received bytes are put */
    hd_job **jobs;          /* jobs that have been submitted */
    size_t jobs_count;
    hd_job *job;            /* a job that is submitted now */
    /* Where the fiber stands in the ready queue. Only for HD_WAIT_YIELDED, with which it is ready at once. A fiber in
     * front goes on as soon as the fiber that runs instead parks or ends. */
    hd_place place;
    bool sliced; /* its time slice is over: the fiber still counts as computing; see hooks/time_slice.c */
    bool quiet; /* nothing is raised before it stops: the caller has something to lose, or Ruby would drop it */
    VALUE (*switch_away)(VALUE argument); /* how the fiber switches away; NULL: the loop picks the next fiber */
    VALUE argument, *result;              /* of switch_away */
} hd_request;

/* Parks the current fiber. Returns how it was woken, or -errno when the kernel or the pool of workers has refused
 * the request. Raises an exception that is pending for the fiber.
 *
 * If something else ends the wait after bytes were read or sent, the bytes count: the wait was successful, and the
 * pending exception is raised at the fiber's next wait. If the fiber cannot go on with bytes that were read, they
 * are put into Ruby's read buffer. */
int hd_park(hd_scheduler *scheduler, const hd_request *request);

/* Parks for descriptors and jobs. 0: timed out; -errno; else 1: one of them is ready, or the caller looks again,
 * because an IO was closed, or because this is the child of a fork (HD_WOKEN_NOT). */
static inline int hd_park_until_ready(hd_scheduler *scheduler, const hd_request *request)
{
    int wake = hd_park(scheduler, request);
    return wake < 0 ? wake : wake != HD_WOKEN_BY_TIMEOUT;
}

/* Polls in this thread, without the loop and without the GVL. Returns what poll(2) has returned, or -errno. */
int hd_poll_alone(struct pollfd *polls, size_t count, int64_t deadline_ns);

/* Lets other fibers run first: fibers that events have woken, and the first fiber whose turn was used up. */
void hd_yield(hd_scheduler *scheduler);
