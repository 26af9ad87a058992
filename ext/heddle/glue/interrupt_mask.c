/* Thread.handle_interrupt for fibers. Ruby asks its masks when it looks at the pending interrupts of a thread; a
 * timeout or a cancel of a fiber is none of them. The method is prepended: its masks are noted for the calling fiber,
 * too. */
#include "park.h"
#include "timeout.h"

typedef struct {
    hd_node node; /* in scheduler->masks, the innermost first */
    hd_scheduler *scheduler;
    VALUE owner;         /* the scheduler's object, kept as long as this record */
    VALUE fiber, root;   /* on whose stack this is; of the chain of fibers that it is for */
    VALUE timings;       /* class -> Symbol */
    unsigned generation; /* the reactor's: a fork in between voids the record */
} mask_record;

typedef struct {
    VALUE class, nearest, timing;
} lookup;

static int consider(VALUE class, VALUE timing, VALUE pointer)
{
    lookup *lookup = (void *)pointer;
    if (!RB_TYPE_P(class, T_CLASS) && !RB_TYPE_P(class, T_MODULE)) return ST_CONTINUE;
    if (!RTEST(rb_class_inherited_p(lookup->class, class))) return ST_CONTINUE;
    if (!NIL_P(lookup->nearest) && !RTEST(rb_class_inherited_p(class, lookup->nearest))) return ST_CONTINUE;
    lookup->nearest = class;
    lookup->timing = timing;
    return ST_CONTINUE;
}

/* The innermost record that names a class of the exception, and what it says; or NULL. Records of a fiber that is
 * neither the task nor running do not count: it may be an Enumerator that nobody asks any more. */
static mask_record *find(const hd_scheduler *scheduler, hd_struck struck, VALUE exception, VALUE *timing)
{
    lookup lookup = {RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception), Qnil, Qnil};
    for (hd_node *node = hd_list_first(&scheduler->masks); node; node = hd_list_after(&scheduler->masks, node)) {
        mask_record *record = HD_CONTAINER_OF(node, mask_record, node);
        if (record->root != struck.root || (record->fiber != struck.root && record->fiber != struck.fiber)) continue;
        rb_hash_foreach(record->timings, consider, (VALUE)&lookup);
        if (NIL_P(lookup.nearest)) continue;
        *timing = lookup.timing;
        return record;
    }
    return NULL;
}

hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_struck struck, VALUE exception)
{
    VALUE timing;
    if (hd_list_empty(&scheduler->masks) || scheduler->masks_ended) return HD_MASK_IMMEDIATE;
    if (!find(scheduler, struck, exception, &timing)) return HD_MASK_IMMEDIATE;
    if (timing == ID2SYM(rb_intern("never"))) return HD_MASK_NEVER;
    return timing == ID2SYM(rb_intern("on_blocking")) ? HD_MASK_ON_BLOCKING : HD_MASK_IMMEDIATE;
}

bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception)
{
    lookup lookup = {RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception), Qnil, Qnil};
    for (hd_node *node = hd_list_first(&scheduler->masks); node; node = hd_list_after(&scheduler->masks, node)) {
        rb_hash_foreach(HD_CONTAINER_OF(node, mask_record, node)->timings, consider, (VALUE)&lookup);
        if (!NIL_P(lookup.nearest) && lookup.timing != ID2SYM(rb_intern("immediate"))) return true;
        lookup.nearest = Qnil;
    }
    return false;
}

void hd_interrupt_mask_hold(hd_scheduler *scheduler, hd_struck struck, VALUE exception)
{
    VALUE timing;
    mask_record *record = find(scheduler, struck, exception, &timing);
    if (record) hd_put_off(scheduler, record->fiber, exception);
}

void hd_interrupt_mask_mark(const hd_scheduler *scheduler)
{
    for (hd_node *node = hd_list_first(&scheduler->masks); node; node = hd_list_after(&scheduler->masks, node))
        rb_gc_mark(HD_CONTAINER_OF(node, mask_record, node)->fiber);
}

static void raise_unmasked(hd_scheduler *scheduler)
{
    hd_timeouts_raise_unmasked(scheduler);
    hd_raise_put_off(scheduler, HD_MASK_IMMEDIATE);
}

static VALUE call_super(VALUE pointer)
{
    mask_record *record = (void *)pointer;
    raise_unmasked(record->scheduler);
    return rb_call_super(1, &record->timings);
}

static bool valid(const mask_record *record)
{
    hd_scheduler_check_fork(record->scheduler);
    return record->generation == record->scheduler->reactor.generation;
}

static VALUE end(VALUE pointer)
{
    mask_record *record = (void *)pointer;
    if (valid(record)) hd_node_remove(&record->node);
    return Qnil;
}

/* As Ruby does, the end of a mask raises what came in the meantime. */
static void raise_held(mask_record *record)
{
    hd_timers_fire(&record->scheduler->reactor.timers, hd_clock_now()); /* the block may not have waited once */
    raise_unmasked(record->scheduler);
}

/* Prepended to Thread.handle_interrupt; without a Heddle scheduler it is plain super. */
static VALUE handle_interrupt(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || argc != 1 || !RB_TYPE_P(argv[0], T_HASH))
        return rb_call_super_kw(argc, argv, RB_PASS_CALLED_KEYWORDS);
    mask_record record = {
        .scheduler = scheduler,
        .owner = scheduler->self,
        .fiber = rb_fiber_current(),
        .root = hd_root(scheduler),
        .timings = rb_hash_dup(argv[0]),
        .generation = scheduler->reactor.generation,
    };
    hd_list_push_front(&scheduler->masks, &record.node);
    VALUE value = rb_ensure(call_super, (VALUE)&record, end, (VALUE)&record);
    if (valid(&record)) raise_held(&record);
    return value;
}

static int strike(VALUE fiber, VALUE exception, VALUE scheduler)
{
    hd_interrupt_fiber((hd_scheduler *)scheduler, fiber, exception);
    return ST_CONTINUE;
}

static VALUE masks_hold_again(VALUE scheduler)
{
    ((hd_scheduler *)scheduler)->masks_ended = false;
    return Qnil;
}

/* Runs the block, in which the masks hold back nothing, nor what they have held back so far: the scheduler ends. */
static VALUE scheduler_without_masks(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    VALUE pending = scheduler->pending;
    scheduler->pending = Qnil;
    scheduler->masks_ended = true;
    if (!NIL_P(pending)) rb_hash_foreach(pending, strike, (VALUE)scheduler);
    RB_GC_GUARD(pending);
    return rb_ensure(rb_yield, Qnil, masks_hold_again, (VALUE)scheduler);
}

void hd_init_interrupt_mask(void)
{
    rb_define_private_method(hd_cScheduler, "without_masks", scheduler_without_masks, 0);
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "HandleInterrupt");
    rb_define_method(extension, "handle_interrupt", handle_interrupt, -1);
}
