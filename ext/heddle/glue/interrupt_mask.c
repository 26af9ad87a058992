/* Thread.handle_interrupt for fibers. Ruby asks its masks when it looks at the pending interrupts of a thread; a
 * timeout or a cancel of a fiber is none of them. Its masks are noted for the calling fiber,
 * too. */
#include "core_ext.h"
#include "park.h"
#include "timeout.h"

/* One handle_interrupt block. It belongs to its fiber, and to nobody else: a fiber that is abandoned in the midst of
 * one (an Enumerator) is collected with it. */
typedef struct {
    hd_scheduler *scheduler;
    VALUE owner;         /* the scheduler's object, kept as long as this record */
    VALUE fiber, outer;  /* that it is a block of; the record of the block around it, or nil */
    VALUE timings;       /* class -> Symbol, by identity */
    uint64_t sequence;   /* the scheduler's: the higher, the further in */
    unsigned generation; /* the reactor's: a fork in between voids the record */
} mask_record;

/* What blocks hold back, and how many of them do: few kinds, however many blocks. Those of abandoned fibers are
 * counted, too, for Ruby's own masks, which are the thread's, last as long. */
typedef struct hd_mask_kind {
    VALUE timings;
    size_t count;
} mask_kind;

enum { IDLE_KINDS_MAX = 8 }; /* so many are kept though no block is of that kind any more */

static ID id_record; /* where a fiber has the record of the innermost of its blocks */

static void mark_record(void *pointer)
{
    const mask_record *record = pointer;
    rb_gc_mark(record->owner);
    rb_gc_mark(record->fiber);
    rb_gc_mark(record->outer);
    rb_gc_mark(record->timings);
}

static const rb_data_type_t record_type = {
    .wrap_struct_name = "Heddle handle_interrupt",
    .function = {.dmark = mark_record, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

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

static bool valid(const mask_record *record)
{
    hd_scheduler_check_fork(record->scheduler);
    return record->generation == record->scheduler->reactor.generation;
}

/* The record, or the next one around it that is of this scheduler; or NULL. */
static mask_record *record_from(const hd_scheduler *scheduler, VALUE object)
{
    while (!NIL_P(object)) {
        mask_record *record = RTYPEDDATA_GET_DATA(object);
        if (record->scheduler == scheduler && valid(record)) return record;
        object = record->outer;
    }
    return NULL;
}

static mask_record *innermost(const hd_scheduler *scheduler, VALUE fiber)
{
    return record_from(scheduler, rb_attr_get(fiber, id_record));
}

/* The innermost record that names a class of the exception, and what it says; or NULL. Records of a fiber that is
 * neither the task nor running do not count: it may be an Enumerator that nobody asks any more. */
static mask_record *find(const hd_scheduler *scheduler, hd_struck struck, VALUE exception, VALUE *timing)
{
    lookup lookup = {RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception), Qnil, Qnil};
    mask_record *ours = innermost(scheduler, struck.fiber);
    mask_record *roots = struck.root == struck.fiber ? NULL : innermost(scheduler, struck.root);
    while (ours || roots) {
        bool further_in = ours && (!roots || ours->sequence > roots->sequence);
        mask_record *record = further_in ? ours : roots;
        rb_hash_foreach(record->timings, consider, (VALUE)&lookup);
        *timing = lookup.timing;
        if (!NIL_P(lookup.nearest)) return record;
        if (further_in)
            ours = record_from(scheduler, record->outer);
        else
            roots = record_from(scheduler, record->outer);
    }
    return NULL;
}

hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_struck struck, VALUE exception)
{
    VALUE timing;
    if (!scheduler->masks || scheduler->masks_ended) return HD_MASK_IMMEDIATE;
    if (!find(scheduler, struck, exception, &timing)) return HD_MASK_IMMEDIATE;
    if (timing == ID2SYM(rb_intern("never"))) return HD_MASK_NEVER;
    return timing == ID2SYM(rb_intern("on_blocking")) ? HD_MASK_ON_BLOCKING : HD_MASK_IMMEDIATE;
}

bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception)
{
    lookup lookup = {RB_TYPE_P(exception, T_CLASS) ? exception : rb_obj_class(exception), Qnil, Qnil};
    for (size_t i = 0; i < scheduler->mask_kinds_count; i++) {
        if (!scheduler->mask_kinds[i].count) continue;
        rb_hash_foreach(scheduler->mask_kinds[i].timings, consider, (VALUE)&lookup);
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
    for (size_t i = 0; i < scheduler->mask_kinds_count; i++) rb_gc_mark(scheduler->mask_kinds[i].timings);
}

static void raise_unmasked(hd_scheduler *scheduler)
{
    hd_timeouts_raise_unmasked(scheduler);
    hd_raise_put_off(scheduler, HD_MASK_IMMEDIATE);
}

/* (Only a public method can be given the caller's block as it is.) */
static VALUE call_original(int argc, const VALUE *argv)
{
    return rb_funcall_passing_block(rb_cThread, HD_KEPT("handle_interrupt"), argc, argv);
}

static VALUE call_with_masks(VALUE object)
{
    mask_record *record = RTYPEDDATA_GET_DATA(object);
    raise_unmasked(record->scheduler);
    return call_original(1, &record->timings);
}

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

/* The hash, as Ruby takes it without a copy of its own: the one of all blocks that hold back the same. */
static VALUE timings_like(hd_scheduler *scheduler, VALUE hash)
{
    for (size_t i = 0; i < scheduler->mask_kinds_count; i++) {
        VALUE timings = scheduler->mask_kinds[i].timings;
        if (RHASH_SIZE(timings) != RHASH_SIZE(hash)) continue;
        rb_hash_foreach(hash, same_timing, (VALUE)&timings);
        if (!NIL_P(timings)) return timings;
    }
    VALUE timings = rb_funcall(rb_hash_new(), rb_intern("compare_by_identity"), 0);
    rb_hash_foreach(hash, copy_timing, timings);
    return rb_obj_freeze(timings);
}

static void count_block(hd_scheduler *scheduler, VALUE timings)
{
    size_t i = 0;
    while (i < scheduler->mask_kinds_count && scheduler->mask_kinds[i].timings != timings) i++;
    if (i == scheduler->mask_kinds_count) {
        mask_kind *kinds = realloc(scheduler->mask_kinds, (i + 1) * sizeof(*kinds));
        if (!kinds) rb_memerror();
        scheduler->mask_kinds = kinds;
        scheduler->mask_kinds[scheduler->mask_kinds_count++] = (mask_kind){timings, 0};
    }
    scheduler->mask_kinds[i].count++;
    scheduler->masks++;
}

static void uncount_block(hd_scheduler *scheduler, VALUE timings)
{
    size_t i = 0;
    while (scheduler->mask_kinds[i].timings != timings) i++;
    scheduler->masks--;
    if (--scheduler->mask_kinds[i].count || scheduler->mask_kinds_count <= IDLE_KINDS_MAX) return;
    scheduler->mask_kinds[i] = scheduler->mask_kinds[--scheduler->mask_kinds_count];
}

static VALUE new_record(hd_scheduler *scheduler, VALUE timings)
{
    mask_record *record;
    VALUE object = TypedData_Make_Struct(0, mask_record, &record_type, record);
    record->scheduler = scheduler;
    record->owner = scheduler->self;
    record->fiber = rb_fiber_current();
    record->outer = rb_attr_get(record->fiber, id_record);
    record->timings = timings;
    record->sequence = ++scheduler->mask_sequence;
    record->generation = scheduler->reactor.generation;
    return object;
}

static VALUE end(VALUE object)
{
    mask_record *record = RTYPEDDATA_GET_DATA(object);
    rb_ivar_set(record->fiber, id_record, record->outer);
    if (valid(record)) uncount_block(record->scheduler, record->timings);
    return Qnil;
}

/* As Ruby does, the end of a mask raises what came in the meantime. */
static void raise_held(mask_record *record)
{
    hd_reactor_fire(&record->scheduler->reactor, hd_clock_now()); /* the block may not have waited once */
    raise_unmasked(record->scheduler);
}

/* In place of Thread.handle_interrupt. */
static VALUE handle_interrupt(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler || argc != 1 || !RB_TYPE_P(argv[0], T_HASH)) return call_original(argc, argv);
    VALUE record = new_record(scheduler, timings_like(scheduler, argv[0]));
    count_block(scheduler, ((mask_record *)RTYPEDDATA_GET_DATA(record))->timings);
    rb_ivar_set(rb_fiber_current(), id_record, record);
    VALUE value = rb_ensure(call_with_masks, record, end, record);
    if (valid(RTYPEDDATA_GET_DATA(record))) raise_held(RTYPEDDATA_GET_DATA(record));
    RB_GC_GUARD(record);
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
    id_record = rb_intern("heddle_mask");
    rb_define_private_method(hd_cScheduler, "without_masks", scheduler_without_masks, 0);
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "HandleInterrupt");
    rb_define_method(extension, "handle_interrupt", handle_interrupt, -1);
}
