/* See frame.h. */
#include "frame.h"

#include "ruby/init.h"

static ID id_frames; /* where a fiber holds the address of its innermost frame, as a Fixnum: the address is even */

static VALUE fixnum_of(hd_frame *frame)
{
    return frame ? (VALUE)frame | RUBY_FIXNUM_FLAG : Qnil;
}

static hd_frame *kept_by(VALUE fiber)
{
    VALUE known = rb_attr_get(fiber, id_frames);
    return NIL_P(known) ? NULL : (hd_frame *)(known & ~(VALUE)RUBY_FIXNUM_FLAG);
}

static hd_frame *innermost(const hd_scheduler *scheduler, VALUE fiber)
{
    if (scheduler->frames.fiber == fiber) return scheduler->frames.innermost;
    return scheduler->frames.kept_by_fibers ? kept_by(fiber) : NULL;
}

void hd_frame_push(hd_frame *frame, hd_scheduler *scheduler, hd_frame_kind kind)
{
    VALUE fiber = rb_fiber_current();
    frame->scheduler = scheduler;
    frame->owner = scheduler->self;
    frame->fiber = fiber;
    frame->kind = kind;
    frame->generation = scheduler->reactor.generation;
    frame->outer = innermost(scheduler, fiber);
    bool root = scheduler->running.root == fiber; /* a fiber that was resumed may be abandoned */
    if (!frame->outer && root && NIL_P(scheduler->frames.fiber)) scheduler->frames.fiber = fiber;
    if (scheduler->frames.fiber == fiber) {
        scheduler->frames.innermost = frame;
        return;
    }
    rb_ivar_set(fiber, id_frames, fixnum_of(frame));
    if (!frame->outer) scheduler->frames.kept_by_fibers++;
}

/* Was it pushed in the parent of a fork? */
static bool is_void(const hd_frame *frame)
{
    hd_scheduler_check_fork(frame->scheduler);
    return frame->generation != frame->scheduler->reactor.generation;
}

bool hd_frame_pop(hd_frame *frame)
{
    hd_scheduler *scheduler = frame->scheduler;
    bool valid = !is_void(frame);
    if (valid && scheduler->frames.fiber == frame->fiber) {
        scheduler->frames.innermost = frame->outer;
        if (!frame->outer) scheduler->frames.fiber = Qnil;
        return true;
    }
    if (valid && !frame->outer) scheduler->frames.kept_by_fibers--;
    if (valid || kept_by(frame->fiber) == frame) rb_ivar_set(frame->fiber, id_frames, fixnum_of(frame->outer));
    return valid;
}

static hd_frame *first_from(hd_frame *frame, const hd_scheduler *scheduler, hd_frame_kind kind)
{
    while (frame && (frame->kind != kind || frame->scheduler != scheduler || is_void(frame)))
        frame = frame->outer;
    return frame;
}

hd_frame *hd_frame_find(const hd_scheduler *scheduler, VALUE fiber, hd_frame_kind kind)
{
    return first_from(innermost(scheduler, fiber), scheduler, kind);
}

hd_frame *hd_frame_next(const hd_frame *frame)
{
    return first_from(frame->outer, frame->scheduler, frame->kind);
}

void hd_init_frame(void)
{
    id_frames = rb_intern("heddle_frames");
}
