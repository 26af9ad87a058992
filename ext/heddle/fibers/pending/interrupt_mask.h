/* What the Thread.handle_interrupt blocks of fibers hold back. Ruby asks its masks when it looks at the pending
 * interrupts of a thread; a timeout or a cancel of a fiber is none of them. So the masks are noted for the fiber,
 * too. */
#pragma once

#include "fibers/frame.h"

typedef enum { HD_MASK_IMMEDIATE, HD_MASK_ON_BLOCKING, HD_MASK_NEVER } hd_mask;

/* One handle_interrupt block, or one of Heddle.shield, which holds back only what comes from outside of it. */
typedef struct {
    hd_frame frame;
    VALUE timings;     /* class -> Symbol, by identity */
    uint64_t sequence; /* the scheduler's: the higher, the further in */
    bool shield;
    bool forked; /* told at its end: it was begun in the parent of a fork */
} hd_mask_frame;

/* Where an exception is to strike: the root of the chain of fibers, and the one of them that runs or is parked. And
 * where it comes from: the masks that had begun before the limit or the scope did. A shield holds back all limits. */
typedef struct {
    VALUE root, fiber;
    uint64_t began;
    bool limits;
} hd_struck;

/* When this exception, or one of this class, may strike there. Runs no Ruby code. */
hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_struck struck, VALUE exception);

/* The fiber whose block holds it back, or nil. */
VALUE hd_interrupt_mask_owner(const hd_scheduler *scheduler, hd_struck struck, VALUE exception);

/* May a fiber of this scheduler hold it back? Ruby then holds it back for the whole thread. Runs no Ruby code. */
bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception);

/* Begins and ends a block of the current fiber; it is a shield if that is set. (The end is for an ensure.) */
void hd_interrupt_mask_begin(hd_mask_frame *mask, hd_scheduler *scheduler, VALUE timings);
VALUE hd_interrupt_mask_end(VALUE mask);

/* The classes that are held back. */
void hd_interrupt_mask_mark(const hd_scheduler *scheduler);
