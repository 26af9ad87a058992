/* PENDING EXCEPTIONS: what shall be raised in a fiber from outside: the end of a Timeout, a cancel, the failure of a
 * scope, what a handle_interrupt has held back. A fiber has a queue of them, in which each source has a place of its
 * own: its task's cancel, each scope, each Timeout, each exception that somebody sends. So none takes the place of
 * another, and each is withdrawn alone, when its block ends. An exception leaves the queue only when it is raised:
 *
 *  - at once, if the fiber (or one that it has resumed) is parked: its wait ends and the exception is raised there;
 *  - else when the fiber next parks;
 *  - later, when a Thread.handle_interrupt holds it back: at the end of that, or where it allows;
 *  - later, while an exception is on its way there that ends its block, too (as trio says: the block is cancelled): the
 *    ensure and rescue clauses may wait. When that one was rescued, it comes at the next wait.
 *
 * Of several the one is raised that ends the outermost block. Blocks are numbered as they begin (hd_block_begins): the
 * lower, the further out; 0 is the task itself. What is on its way is $! and its causes, in which the number is noted
 * when they are raised; so nothing has to be kept, or forgotten, for them.
 *
 * Fiber#raise, an unblock or bytes that arrive may be faster than an exception whose wait was ended for it: it stays in
 * its queue, and comes at the next wait.
 *
 * A close is no strike: it ends one operation, and tells nobody else. What is raised there lies in the wait. */
#pragma once

#include "interrupt_mask.h"

typedef struct hd_strike {
    hd_map_node fiber_node; /* in scheduler->strikes.by_fiber; its key is the fiber, mostly the root of a chain */
    hd_scheduler *scheduler;
    VALUE kept;      /* the fiber that must not be collected meanwhile */
    VALUE exception; /* or its class: what the masks are asked for */
    uint64_t due;    /* counts those that have become due; 0: a Timeout whose time is not over yet */
    uint64_t began;  /* the number of the block that it ends, a limit's or a scope's; 0: the task, or it is sent */
    bool limits;     /* it is a Timeout's */
    bool forced;     /* nothing holds it back: the time to clean up is over */
    VALUE (*take)(struct hd_strike *strike); /* takes it out of the queue to be raised; undef: it has raised itself */
    void (*drop)(struct hd_strike *strike);  /* takes it out of the queue: it is to strike nobody */
} hd_strike;

/* -- waits ---------------------------------------------------------------------------------------------------- */

/* The root of the chain of fibers that runs now. */
VALUE hd_root(const hd_scheduler *scheduler);

/* The wait of a fiber, or NULL. */
hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber);

/* The wait of a fiber, or of the one that it has resumed, directly or not; or NULL. */
hd_wait *hd_wait_of_chain(hd_scheduler *scheduler, VALUE root);

/* Settles a wait, from any thread with the GVL, and wakes its scheduler if it sleeps. */
bool hd_wake_wait(hd_wait *wait, hd_wake wake);

/* The same with an exception for this one operation. */
bool hd_end_operation(hd_wait *wait, VALUE exception);

/* Makes an unblock of a wait that a strike or a deadline has ended. The strike comes at the fiber's next wait. */
void hd_unblock_instead(hd_scheduler *scheduler, hd_wait *wait);

/* -- strikes -------------------------------------------------------------------------------------------------- */

/* The number of a block that begins now. */
static inline uint64_t hd_block_begins(hd_scheduler *scheduler)
{
    return ++scheduler->masks.sequence;
}

/* Raises the exception of a strike like this one in the fiber: now if it (or one that it has resumed) is parked, else
 * when it next parks. Nothing happens if its place is taken. From any thread with the GVL. */
void hd_strike_fiber(hd_scheduler *scheduler, VALUE fiber, hd_strike like);

/* Raises it when the fiber parks next; one that was raised before has the place that it had. */
void hd_strike_later(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* The exception shall not be raised any more in this fiber. */
void hd_strike_withdraw(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* Nor in any other: whoever it was to strike, nobody waits for it. */
void hd_strike_withdraw_everywhere(hd_scheduler *scheduler, VALUE exception);

/* For a strike that belongs to another file: puts it into the queue, makes it due, takes it out (was it due?). */
void hd_strike_add(hd_strike *strike, hd_scheduler *scheduler, VALUE fiber);
void hd_strike_make_due(hd_strike *strike);
bool hd_strike_remove(hd_strike *strike);

/* The next strike in the queue of a fiber, due or not, after one or NULL; or NULL. */
hd_strike *hd_strike_next(const hd_scheduler *scheduler, VALUE fiber, const hd_strike *after);

/* Ends the wait of its fiber for a strike that is due, where the masks let it. */
void hd_strike_deliver(hd_strike *strike);

/* The exception, which ends this block, is raised now. */
void hd_strike_note_raised(const hd_scheduler *scheduler, VALUE exception, uint64_t began);

/* It has ended its task, with its causes: whoever gets it from there is not ended by it. */
void hd_strike_left_task(VALUE exception);

typedef enum { HD_ALL_STRIKES, HD_TIMEOUTS_ONLY } hd_strike_choice;

/* Raises the outermost exception that is due in the running chain of fibers, of those that are not masked more
 * strictly. It returns if there is none. */
void hd_strikes_raise(hd_scheduler *scheduler, hd_mask strictest, hd_strike_choice choice);

/* At the beginning of a hook that may have nothing to wait for: the loop may not have come for long. */
static inline void hd_strikes_raise_overdue(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->strikes.timeouts_due) && !hd_scheduler_foreign(scheduler))
        hd_strikes_raise(scheduler, HD_MASK_ON_BLOCKING, HD_TIMEOUTS_ONLY);
}

/* The running fiber ends: what is left in its queue (of an Enumerator that nobody asks any more) strikes nobody. */
void hd_strikes_drop(hd_scheduler *scheduler);

/* What is in the queues strikes now, whatever holds it back. */
void hd_strikes_deliver_all(hd_scheduler *scheduler);

/* For the GC; for the child of a fork; for the end of the scheduler. */
void hd_strikes_mark(const hd_scheduler *scheduler);
void hd_strikes_forget(hd_scheduler *scheduler);
void hd_strikes_free(hd_scheduler *scheduler);

/* -- home ----------------------------------------------------------------------------------------------------- */

/* What is to be raised in the thread that runs the scheduler. The first one stays. */
void hd_raise_at_home(hd_scheduler *scheduler, VALUE error);
