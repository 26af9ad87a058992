/* PENDING EXCEPTIONS: exceptions that must be raised in a fiber from outside. Examples are the end of a Timeout, a
 * cancel, the failure of a scope, and an exception that a handle_interrupt block has held back. In names such an
 * exception is `pending`.
 *
 * Problem: with one place for the pending exception of a fiber, a second one would be lost. Way: a fiber has a queue,
 * in which each source has a place of its own: its task's cancel, each scope, each Timeout, each exception that
 * somebody sends. So no exception takes the place of another, and each is withdrawn alone, when its block ends. An
 * exception leaves the queue only when it is raised:
 *
 *  - at once, if the fiber (or a fiber that it has resumed) is parked: its wait ends, and the exception is raised
 *    there;
 *  - else when the fiber next parks;
 *  - later, if a Thread.handle_interrupt block holds it back: at the end of this block, or where the block allows
 *    it;
 *  - later, if another exception that ends its block, too, is on its way in the fiber (in trio's words: the block is
 *    cancelled). So the ensure and rescue clauses may wait. When that exception was rescued, this one is raised at the
 *    next wait.
 *
 * If several are due, the exception that ends the outermost block is raised. Blocks are numbered as they begin
 * (hd_block_begins). A lower number is further out, and 0 is the task itself. An exception gets its number noted in
 * it when it is raised. The exceptions on their way are $! and its causes, so no other record of them is needed.
 *
 * Fiber#raise, an unblock or received bytes may be faster than an exception that has ended a wait. Then the
 * exception stays in its queue, and is raised at the next wait.
 *
 * Rejected: one status for each block, as in trio, where every wait in a cancelled block raises. Most of Ruby's
 * libraries wait in ensure clauses, so waits there do not raise.
 *
 * A close is not a pending exception: it ends one operation with an IOError and affects nothing else. Its exception is
 * in the wait.
 *
 * Sources: guides/design.md, "Pending exceptions"; guides/endings.md, "When several things end a task". */
#pragma once

#include "interrupt_mask.h"

/* Takes the place of an exception: the fiber is killed (Fiber#kill). */
#define HD_PENDING_KILL Qtrue

typedef struct hd_pending {
    hd_map_node fiber_node; /* in scheduler->pending.by_fiber; its key is the fiber, mostly the root of a chain */
    hd_scheduler *scheduler;
    VALUE kept;      /* the fiber, which must not be collected meanwhile */
    VALUE exception; /* or its class, by which the masks are looked up */
    uint64_t due;    /* the order in which they became due; 0: a Timeout whose time is not over yet */
    uint64_t began; /* the block that it ends, a limit or a scope; 0: the task, or somebody has sent it */
    bool limits;     /* it belongs to a Timeout */
    bool forced;     /* nothing holds it back, because the time to clean up is over */
    /* takes it out, and returns it to be raised; undef: it was sent to the thread, so the caller raises nothing */
    VALUE (*take)(struct hd_pending *pending);
    void (*drop)(struct hd_pending *pending);  /* takes it out of the queue, so that it is never raised */
} hd_pending;

/* -- waits ---------------------------------------------------------------------------------------------------- */

/* The root of the chain of fibers that runs now. */
VALUE hd_root(const hd_scheduler *scheduler);

/* The wait of a fiber, or NULL. */
hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber);

/* The wait of a fiber, or of a fiber that it has resumed, directly or not; or NULL. */
hd_wait *hd_wait_of_chain(hd_scheduler *scheduler, VALUE root);

/* Settles a wait, from any thread with the GVL, and wakes its scheduler if it sleeps. */
bool hd_wake_wait(hd_wait *wait, hd_wake wake);

/* Settles a wait with an exception for this one operation. */
bool hd_end_operation(hd_wait *wait, VALUE exception);

/* Lets a wait that a pending exception or a deadline has ended count as ended by an unblock. The exception is raised at
 * the fiber's next wait. */
void hd_unblock_instead(hd_scheduler *scheduler, hd_wait *wait);

/* -- pending exceptions --------------------------------------------------------------------------------------- */

/* Returns the number of a block that begins now. */
static inline uint64_t hd_block_begins(hd_scheduler *scheduler)
{
    return ++scheduler->masks.sequence;
}

/* Raises an exception in the fiber, with the values of `like`: now if the fiber (or a fiber that it has resumed) is
 * parked, else when it next parks. Does nothing if its place is taken. May be called from any thread with the GVL. */
void hd_raise_into(hd_scheduler *scheduler, VALUE fiber, hd_pending like);

/* Raises the exception when the fiber parks next. An exception that was raised before keeps the place that it had. */
void hd_raise_later(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* Raises these exceptions when the running chain of fibers parks next. exceptions: an Array, or nil. */
void hd_raise_all_later(hd_scheduler *scheduler, VALUE exceptions);

/* Takes the exception out of this fiber's queue. */
void hd_pending_withdraw(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* Takes the exception out of the queue of every fiber, because nobody waits for its effect. */
void hd_pending_withdraw_everywhere(hd_scheduler *scheduler, VALUE exception);

/* For a pending exception that belongs to another file: adds it to the queue, makes it due, takes it out (and says
 * whether it was due). */
void hd_pending_add(hd_pending *pending, hd_scheduler *scheduler, VALUE fiber);
void hd_pending_make_due(hd_pending *pending);
bool hd_pending_remove(hd_pending *pending);

/* Returns the pending exception in the queue of a fiber, due or not, that follows `after` (NULL: the first one); NULL
 * at the end. */
hd_pending *hd_pending_next(const hd_scheduler *scheduler, VALUE fiber, const hd_pending *after);

/* Ends the wait of its fiber for a pending exception that is due, if the masks allow it. */
void hd_pending_deliver(hd_pending *pending);

/* Will the end of a Timeout, or of a scope's deadline, end this parked wait? Runs no Ruby code. */
bool hd_pending_limits(const hd_scheduler *scheduler, const hd_wait *wait);

/* Notes in the exception, which ends this block, that it is raised now. */
void hd_pending_note_raised(const hd_scheduler *scheduler, VALUE exception, uint64_t began);

/* Removes the note from an exception that has ended its task, and from its causes. Others may get the exception from
 * Task#value, and it does not end them. */
void hd_pending_left_task(VALUE exception);

typedef enum { HD_ALL_PENDING, HD_TIMEOUTS_ONLY } hd_pending_choice;

/* Raises the outermost exception that is due in the running chain of fibers and that is not masked more strictly
 * than this. Returns if no such exception exists. */
void hd_pending_raise(hd_scheduler *scheduler, hd_mask strictest, hd_pending_choice choice);

/* Raises an overdue exception at the beginning of a hook that may not have to wait: the loop may not have run for
 * long. */
static inline void hd_pending_raise_overdue(hd_scheduler *scheduler)
{
    if (RB_UNLIKELY(scheduler->pending.timeouts_due) && !hd_scheduler_foreign(scheduler))
        hd_pending_raise(scheduler, HD_MASK_ON_BLOCKING, HD_TIMEOUTS_ONLY);
}

/* Takes a forced exception, which nothing holds back, out of the queue of the running root; or returns nil. */
VALUE hd_pending_take_forced(hd_scheduler *scheduler);

/* Empties the queue of the running fiber, which ends. It may be an abandoned Enumerator's fiber. */
void hd_pending_drop(hd_scheduler *scheduler);

/* Ends the waits of all fibers that have a pending exception, except for those of Timeouts. The caller has set
 * masks.ended, so no mask holds one back. */
void hd_pending_deliver_all(hd_scheduler *scheduler);

/* For the GC; for the child of a fork; for the end of the scheduler. */
void hd_pending_mark(const hd_scheduler *scheduler);
void hd_pending_forget(hd_scheduler *scheduler);
void hd_pending_free(hd_scheduler *scheduler);

/* -- home ----------------------------------------------------------------------------------------------------- */

/* Raises an exception in the thread that runs the scheduler. Of several, the first one counts. The cancel of a plain
 * fiber at the end of the scheduler is not raised there: it has ended this fiber, or the signal handler that waited in
 * it. */
void hd_raise_at_home(hd_scheduler *scheduler, VALUE error);
