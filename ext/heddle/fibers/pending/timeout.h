/* TIMEOUTS: Timeout.timeout in a fiber.
 *
 * Problem: a timeout nearly always ends without being needed, so it must be cheap; and when its time is over, its fiber
 * may wait, run or compute. Way: each call has one record on the C stack of its fiber: a timer of the loop and a
 * pending exception (pending.h). No object is made until its time is over. A fiber that waits is woken by the timer. A
 * fiber that computes is found by the thread of overdue.h.
 *
 * Rejected: a timer of the kernel for each timeout. One heap of timers gives the loop its one deadline, without a
 * system call and without an object for each timeout.
 *
 * Price: the record is void after a fork, and every use has to check that. */
#pragma once

#include "pending.h"

typedef struct {
    hd_pending pending; /* in the queue of the root until it is raised */
    hd_timer timer;
    VALUE root;          /* the root of the chain of fibers that will raise it */
    VALUE duration, exception, message; /* exception nil: the caller has named none */
    VALUE raised;        /* the exception, once it is made */
    VALUE sent;          /* the exception that overdue.c has sent to the thread with Thread#raise, or nil */
    bool suspected;      /* the fiber was once seen computing after its time */
    unsigned parks;      /* the number of parks that the scheduler had counted then */
    unsigned generation; /* the reactor's generation: a fork in between voids the record */
} hd_timeout;

static inline hd_timeout *hd_timeout_of(hd_pending *pending)
{
    return HD_CONTAINER_OF(pending, hd_timeout, pending);
}

/* Starts a timeout. */
void hd_timeout_set(hd_timeout *timeout, hd_scheduler *scheduler, int64_t deadline_ns);

/* Makes it a cancel that ends the block now: its exception is raised in this fiber. */
void hd_timeout_cancel(hd_timeout *timeout, VALUE fiber);

/* Makes a timeout due whose time is over. */
void hd_timeout_expire(hd_timeout *timeout);

/* Ends a timeout, so that it raises nothing. Was it due? */
bool hd_timeout_forget(hd_timeout *timeout);

/* Returns the exception that it raises. May call Ruby code. */
VALUE hd_timeout_exception(const hd_timeout *timeout);

/* Returns [root fiber, deadline in ns] of each timeout that is not due yet. */
VALUE hd_timeouts_set(const hd_scheduler *scheduler);
