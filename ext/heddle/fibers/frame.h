/* What lives on the C stack of a fiber for a while, and is asked for from elsewhere: a handle_interrupt block, a
 * call whose blocking operations run inline, a close, a Mutex#sleep. The record that a file needs begins with an
 * hd_frame; it is pushed, and popped in an ensure. (A Timeout is asked for by the chain of fibers and by its
 * deadline, see strike.h; it keeps to the same rule for forks.)
 *
 * The frames of a fiber hang on the fiber, so that one that is abandoned in the midst of a frame can be collected.
 * Those of one root at a time hang on the scheduler, which is faster, and nearly always only one has any. After a fork
 * the frames of the parent's fibers are void: they are looked at no more. */
#pragma once

#include "scheduler.h"

typedef enum { HD_FRAME_MASK, HD_FRAME_INLINE, HD_FRAME_CLOSE, HD_FRAME_MUTEX_SLEEP } hd_frame_kind;

typedef struct hd_frame {
    struct hd_frame *outer; /* of the same fiber */
    hd_scheduler *scheduler;
    VALUE owner, fiber; /* the scheduler's object and the fiber: this stack keeps them alive */
    hd_frame_kind kind;
    unsigned generation; /* the reactor's */
} hd_frame;

/* Pushes a frame of the current fiber. */
void hd_frame_push(hd_frame *frame, hd_scheduler *scheduler, hd_frame_kind kind);

/* Pops it, with whatever is left on top of it. False: it is void. */
bool hd_frame_pop(hd_frame *frame);

/* Was it pushed in the parent of a fork? */
bool hd_frame_void(const hd_frame *frame);

/* The innermost frame of this kind that the fiber is in, of those that this scheduler knows; or NULL. */
hd_frame *hd_frame_find(const hd_scheduler *scheduler, VALUE fiber, hd_frame_kind kind);

/* The next one of the same kind, further out; or NULL. */
hd_frame *hd_frame_next(const hd_frame *frame);
