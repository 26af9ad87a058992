/* Timeout.timeout in a fiber: the record of one call, on the C stack of the fiber that has made it. No object is made
 * until its time is over. */
#pragma once

#include "strike.h"

typedef struct {
    hd_strike strike; /* in the queue of the root until it is raised */
    hd_timer timer;
    VALUE root;          /* of the chain of fibers that is to raise it */
    VALUE duration, exception, message; /* exception nil: none was named */
    VALUE raised;        /* the exception, once it is made */
    VALUE sent;          /* what Thread#raise was given by hd_timeouts_strike (overdue.h), or nil */
    bool blocking;       /* of a blocking fiber: calls of the system are struck, too, as by Ruby's own Timeout */
    bool suspected;      /* it was seen to compute, after so many parks of the scheduler */
    unsigned parks;
    unsigned generation; /* the reactor's: a fork in between voids the record */
} hd_timeout;

static inline hd_timeout *hd_timeout_of(hd_strike *strike)
{
    return HD_CONTAINER_OF(strike, hd_timeout, strike);
}

/* Its time begins. */
void hd_timeout_set(hd_timeout *timeout, hd_scheduler *scheduler, int64_t deadline_ns);

/* Its time is over. */
void hd_timeout_expire(hd_timeout *timeout);

/* It is to strike nobody any more. Was it due? */
bool hd_timeout_forget(hd_timeout *timeout);

/* The exception that it raises. May call Ruby code. */
VALUE hd_timeout_exception(const hd_timeout *timeout);

/* [root fiber, deadline in ns] of each that is not due yet. */
VALUE hd_timeouts_set(const hd_scheduler *scheduler);
