/* See interrupt_mask.h. */
#include "interrupt_mask.h"

/* A kind: what blocks hold back, and how many blocks hold back just this. There are few kinds, however many blocks.
 * Blocks of abandoned fibers are counted, too, because Ruby's own masks, which are the thread's, last as long. */
typedef struct hd_mask_kind {
    VALUE timings;
    size_t count;
} mask_kind;

enum { IDLE_KINDS_MAX = 8 }; /* a kind without a block is kept as long as there are at most this many kinds */

typedef struct {
    VALUE class, nearest, timing;
} class_search;

static VALUE never(void)
{
    return ID2SYM(rb_intern("never"));
}

static class_search lookup_of(VALUE exception)
{
    return (class_search){RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception), Qnil, Qnil};
}

static int consider(VALUE class, VALUE timing, VALUE pointer)
{
    class_search *lookup = (void *)pointer;
    if (!RB_TYPE_P(class, T_CLASS) && !RB_TYPE_P(class, T_MODULE)) return ST_CONTINUE;
    if (!RTEST(rb_class_inherited_p(lookup->class, class))) return ST_CONTINUE;
    if (!NIL_P(lookup->nearest) && !RTEST(rb_class_inherited_p(class, lookup->nearest))) return ST_CONTINUE;
    lookup->nearest = class;
    lookup->timing = timing;
    return ST_CONTINUE;
}

static hd_mask_frame *innermost(const hd_scheduler *scheduler, VALUE fiber)
{
    return (hd_mask_frame *)hd_frame_find(scheduler, fiber, HD_FRAME_MASK);
}

/* Finds the innermost block that names a class of the exception, and what it says; or NULL. Blocks of a fiber that
 * is neither the root nor running do not count: it may be an abandoned Enumerator's. */
static const hd_mask_frame *find(const hd_scheduler *scheduler, hd_recipient recipient, VALUE exception, VALUE *timing)
{
    class_search lookup = lookup_of(exception);
    const hd_mask_frame *ours = innermost(scheduler, recipient.fiber);
    const hd_mask_frame *roots = recipient.root == recipient.fiber ? NULL : innermost(scheduler, recipient.root);
    while (ours || roots) {
        const hd_mask_frame **next = ours && (!roots || ours->sequence > roots->sequence) ? &ours : &roots;
        bool from_inside = (*next)->shield && (*next)->sequence <= recipient.began;
        if (!from_inside && (*next)->shield && recipient.limits)
            lookup = (class_search){lookup.class, lookup.class, never()};
        else if (!from_inside)
            rb_hash_foreach((*next)->timings, consider, (VALUE)&lookup);
        *timing = lookup.timing;
        if (!NIL_P(lookup.nearest)) return *next;
        *next = (const hd_mask_frame *)hd_frame_next(&(*next)->frame);
    }
    return NULL;
}

hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_recipient recipient, VALUE exception)
{
    VALUE timing;
    if (!scheduler->masks.blocks || scheduler->masks.ended) return HD_MASK_IMMEDIATE;
    if (!find(scheduler, recipient, exception, &timing)) return HD_MASK_IMMEDIATE;
    if (timing == never()) return HD_MASK_NEVER;
    return timing == ID2SYM(rb_intern("on_blocking")) ? HD_MASK_ON_BLOCKING : HD_MASK_IMMEDIATE;
}

VALUE hd_interrupt_mask_owner(const hd_scheduler *scheduler, hd_recipient recipient, VALUE exception)
{
    VALUE timing;
    const hd_mask_frame *mask = find(scheduler, recipient, exception, &timing);
    return mask ? mask->frame.fiber : Qnil;
}

bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception)
{
    for (size_t i = 0; i < scheduler->masks.kinds_count; i++) {
        class_search lookup = lookup_of(exception);
        if (!scheduler->masks.kinds[i].count) continue;
        rb_hash_foreach(scheduler->masks.kinds[i].timings, consider, (VALUE)&lookup);
        if (!NIL_P(lookup.nearest) && lookup.timing != ID2SYM(rb_intern("immediate"))) return true;
    }
    return false;
}

void hd_interrupt_mask_mark(const hd_scheduler *scheduler)
{
    for (size_t i = 0; i < scheduler->masks.kinds_count; i++) rb_gc_mark(scheduler->masks.kinds[i].timings);
}

/* -- blocks -------------------------------------------------------------------------------------------------- */

static int same_timing(VALUE class, VALUE timing, VALUE pointer)
{
    VALUE *timings = (VALUE *)pointer;
    if (rb_hash_lookup2(*timings, class, Qundef) == timing) return ST_CONTINUE;
    *timings = Qnil;
    return ST_STOP;
}

static int copy_timing(VALUE class, VALUE timing, VALUE timings)
{
    rb_hash_aset(timings, class, timing);
    return ST_CONTINUE;
}

/* Returns the hash for all blocks that hold back the same. Ruby takes this hash without a copy of its own. */
static VALUE timings_like(const hd_scheduler *scheduler, VALUE hash)
{
    for (size_t i = 0; i < scheduler->masks.kinds_count; i++) {
        VALUE timings = scheduler->masks.kinds[i].timings;
        if (RHASH_SIZE(timings) != RHASH_SIZE(hash)) continue;
        rb_hash_foreach(hash, same_timing, (VALUE)&timings);
        if (!NIL_P(timings)) return timings;
    }
    VALUE timings = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);
    rb_hash_foreach(hash, copy_timing, timings);
    return rb_obj_freeze(timings);
}

static mask_kind *kind_of(hd_scheduler *scheduler, VALUE timings)
{
    size_t i = 0;
    while (i < scheduler->masks.kinds_count && scheduler->masks.kinds[i].timings != timings) i++;
    if (i == scheduler->masks.kinds_count) {
        mask_kind *kinds = realloc(scheduler->masks.kinds, (i + 1) * sizeof(*kinds));
        if (!kinds) rb_memerror();
        scheduler->masks.kinds = kinds;
        scheduler->masks.kinds[scheduler->masks.kinds_count++] = (mask_kind){timings, 0};
    }
    return &scheduler->masks.kinds[i];
}

void hd_interrupt_mask_begin(hd_mask_frame *mask, hd_scheduler *scheduler, VALUE timings)
{
    mask->timings = timings_like(scheduler, timings);
    mask->sequence = ++scheduler->masks.sequence;
    kind_of(scheduler, mask->timings)->count++;
    scheduler->masks.blocks++;
    hd_frame_push(&mask->frame, scheduler, HD_FRAME_MASK);
}

VALUE hd_interrupt_mask_end(VALUE pointer)
{
    hd_mask_frame *mask = (void *)pointer;
    hd_scheduler *scheduler = mask->frame.scheduler;
    mask->forked = !hd_frame_pop(&mask->frame);
    if (mask->forked) return Qnil;
    mask_kind *kind = kind_of(scheduler, mask->timings);
    scheduler->masks.blocks--;
    if (!--kind->count && scheduler->masks.kinds_count > IDLE_KINDS_MAX)
        *kind = scheduler->masks.kinds[--scheduler->masks.kinds_count];
    return Qnil;
}
