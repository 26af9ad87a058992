/* FRAMES: records on the C stack of a fiber that other parts of Heddle look up while a call lasts.
 *
 * Problem: a hook or another fiber must know that a fiber is inside a handle_interrupt block, a call whose blocking
 * operations run inline, a close, a Mutex#sleep or a block of without_time_slices. Way: the record of such a call
 * begins with an hd_frame. The call pushes it and pops it in an ensure. A Timeout is not a frame, for it is looked up
 * by its chain of fibers and by its deadline (pending.h); but the rule for forks is valid for it, too.
 *
 * The frames of a fiber hang on the fiber, so that the GC can collect a fiber that was abandoned inside of a frame.
 * Only the frames of one root at a time hang on the scheduler instead. That is faster, and nearly always only one
 * root has any. After a fork the frames of the parent's fibers are void, and nothing looks at them. */
#pragma once

#include "scheduler.h"

typedef enum { HD_FRAME_MASK, HD_FRAME_INLINE, HD_FRAME_CLOSE, HD_FRAME_MUTEX_SLEEP, HD_FRAME_WHOLE } hd_frame_kind;

typedef struct hd_frame {
    struct hd_frame *outer; /* the next frame of the same fiber */
    hd_scheduler *scheduler;
    VALUE owner, fiber; /* the scheduler's object and the fiber; this stack keeps them alive */
    hd_frame_kind kind;
    unsigned generation; /* the reactor's generation at the push */
} hd_frame;

/* Pushes a frame of the current fiber. */
void hd_frame_push(hd_frame *frame, hd_scheduler *scheduler, hd_frame_kind kind);

/* Pops the frame and every frame above it. False: the frame is void. */
bool hd_frame_pop(hd_frame *frame);

/* Finds the innermost frame of this kind that the fiber is in, as far as this scheduler knows of it; or NULL. */
hd_frame *hd_frame_find(const hd_scheduler *scheduler, VALUE fiber, hd_frame_kind kind);

/* Finds the next frame of the same kind, further out; or NULL. */
hd_frame *hd_frame_next(const hd_frame *frame);
