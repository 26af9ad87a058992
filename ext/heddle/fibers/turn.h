/* THE TURN OF A FIBER: what succeeds without waiting counts, too. A stream whose data is always there never parks its
 * reader, who would keep all others from running. So every operation that may succeed without waiting calls
 * hd_turn_spend before it begins: a method in C, a hook. When the turn is used up (HD_NS_PER_TURN), and others are
 * ready or the kernel was not looked at for so long, the fiber stands behind those that an event has woken.
 *
 * It does so before the operation, for then nothing has been read that could get lost: a pending exception is raised
 * there, as at any wait. To ask costs a look at the clock for some of the operations (core/reactor.h). */
#pragma once

#include "fibers/pending/strike.h"
#include "scheduler.h"

typedef enum {
    HD_TURN_ENDS,
    HD_TURN_ENDS_LATER, /* a write: the first one after the turn is used up still goes out, for somebody waits for it */
    HD_TURN_ENDS_AMID   /* a part has been read: nothing is raised here */
} hd_turn_end;

/* The slow part of what follows. */
bool hd_turn_look(hd_scheduler *scheduler, VALUE subject, hd_turn_end end);

/* An operation on the subject (an IO, or nil) begins, which may succeed without waiting. True: others may have run. */
static inline bool hd_turn_spend(hd_scheduler *scheduler, VALUE subject, hd_turn_end end)
{
    if (end != HD_TURN_ENDS_AMID) hd_strikes_raise_overdue(scheduler);
    if (RB_LIKELY(!hd_reactor_count_operation(&scheduler->reactor))) return false;
    return hd_turn_look(scheduler, subject, end);
}

/* The same where Heddle's scheduler may not run. */
void hd_turn_spend_here(VALUE subject, hd_turn_end end);
