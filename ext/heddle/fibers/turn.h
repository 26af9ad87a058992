/* THE TURN OF A FIBER: an operation that succeeds without waiting counts, too.
 *
 * Problem: a stream whose data is always there never parks its reader, which would keep all other fibers from
 * running. Way: every operation that may succeed without waiting (a method in C, a hook) calls hd_turn_spend before
 * it begins. When the turn is used up (HD_NS_PER_TURN), and other fibers are ready or a look at the kernel is due,
 * the fiber moves behind the fibers that an event has woken.
 *
 * It moves before the operation, because nothing has been read then that could get lost: a pending exception is
 * raised there, as at any wait.
 *
 * Price: some of the operations look at the clock (core/reactor.h). A look costs as much as a tenth of a small
 * system call, so the first operation of a turn makes none, and of short operations only every fourth does.
 *
 * Sources: guides/design.md, "The turn of a task". */
#pragma once

#include "fibers/pending/pending.h"
#include "scheduler.h"

typedef enum {
    HD_TURN_ENDS,
    /* a write: the first one after the turn is used up still goes out, because somebody waits for it */
    HD_TURN_ENDS_LATER,
    HD_TURN_ENDS_AMID   /* a part has been read: nothing is raised here */
} hd_turn_end;

/* The slow part of hd_turn_spend. */
bool hd_turn_look(hd_scheduler *scheduler, VALUE subject, hd_turn_end end);

/* Counts an operation on the subject (an IO, or nil) that begins now and may succeed without waiting. True: other
 * fibers may have run. */
static inline bool hd_turn_spend(hd_scheduler *scheduler, VALUE subject, hd_turn_end end)
{
    if (end != HD_TURN_ENDS_AMID) hd_pending_raise_overdue(scheduler);
    if (RB_LIKELY(!hd_reactor_count_operation(&scheduler->reactor))) return false;
    return hd_turn_look(scheduler, subject, end);
}

/* Counts an operation as hd_turn_spend does, where it is not known whether one of Heddle's schedulers runs. */
void hd_turn_spend_here(VALUE subject, hd_turn_end end);
