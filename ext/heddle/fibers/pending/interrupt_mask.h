/* EXCEPTION MASKS: what the Thread.handle_interrupt blocks of fibers hold back.
 *
 * Problem: Ruby reads its masks when it looks at the pending interrupts of a thread. A timeout or a cancel of a
 * fiber is not one of these, and Ruby's masks belong to the thread, not to the fiber. Way: each block also has a
 * record (a frame) in its fiber. Before an exception is raised in a fiber, the records of its chain say whether it
 * may be raised.
 *
 * Price: the methods that begin such blocks are Heddle's own. Ruby's own masks last as well, so a fiber that is
 * parked in such a block can hold back an exception of the whole thread. */
#pragma once

#include "fibers/frame.h"

typedef enum { HD_MASK_IMMEDIATE, HD_MASK_ON_BLOCKING, HD_MASK_NEVER } hd_mask;

/* The record of one handle_interrupt block, or of a Heddle.shield block, which holds back only what comes from
 * outside of it. */
typedef struct {
    hd_frame frame;
    VALUE timings;     /* class -> Symbol, by identity */
    uint64_t sequence; /* the scheduler's count at its beginning: a higher one is further in */
    bool shield;
    bool forked; /* set at its end: the block was begun in the parent of a fork */
} hd_mask_frame;

/* The place where an exception is raised, and its origin. The place is the root of the chain of fibers, and the
 * fiber of the chain that runs or is parked. The origin says which masks had begun before the limit or the scope. A
 * shield holds back every limit that began outside of it, whatever the class of its exception. */
typedef struct {
    VALUE root, fiber;
    uint64_t began;
    bool limits;
} hd_recipient;

/* Says when this exception, or one of this class, may be raised there. Runs no Ruby code. */
hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_recipient recipient, VALUE exception);

/* The fiber whose block holds it back, or nil. */
VALUE hd_interrupt_mask_owner(const hd_scheduler *scheduler, hd_recipient recipient, VALUE exception);

/* May a fiber of this scheduler hold it back? Ruby then holds it back for the whole thread. Runs no Ruby code. */
bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception);

/* Begins and ends a block of the current fiber, or a shield if that is set. The end belongs in an ensure. */
void hd_interrupt_mask_begin(hd_mask_frame *mask, hd_scheduler *scheduler, VALUE timings);
VALUE hd_interrupt_mask_end(VALUE mask);

/* Marks the classes that are held back. */
void hd_interrupt_mask_mark(const hd_scheduler *scheduler);
