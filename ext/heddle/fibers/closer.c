/* See closer.h. */
#include "closer.h"

#include "fibers/pending/pending.h"
#include "ruby/interrupt_queue.h"
#include "ruby/ruby_internals.h"
#include "frame.h"
#include "park.h"
#include "unblock_relay.h"

/* LOOK_AGAIN_NS: a closer looks again after this time, because an unblock that comes before its sleep is lost.
 * EXCEPTIONS_MAX: the closer gives up after this number of waits that end with an exception, or fail without memory. */
enum { LOOK_AGAIN_NS = 20 * HD_NS_PER_MS, EXCEPTIONS_MAX = 100 };

#if HD_CLOSE_HANDS_OVER_A_MUTEX

static bool is_mutex(VALUE object)
{
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) == hd_mutex_type;
}

static int masks_error(VALUE class, VALUE timing, VALUE masked)
{
    if (!RB_TYPE_P(class, T_CLASS) && !RB_TYPE_P(class, T_MODULE)) return ST_CONTINUE;
    if (timing == ID2SYM(rb_intern("immediate")) || !RTEST(rb_class_inherited_p(rb_eIOError, class)))
        return ST_CONTINUE;
    *(bool *)masked = true;
    return ST_STOP;
}

/* Will an IOError or a kill be raised in this thread, with no mask that holds it back? A thread has two hidden
 * lists. One holds what will be raised in it (a number stands for a kill), the other the masks of
 * Thread.handle_interrupt. */
static bool error_will_be_raised(void)
{
    bool sent = false, masked = false;
    hd_hidden_objects lists;
    hd_find_thread_lists(&lists);
    for (int i = 0; i < lists.count; i++) {
        for (long j = 0; j < RARRAY_LEN(lists.found[i]); j++) {
            VALUE element = RARRAY_AREF(lists.found[i], j);
            if (RB_TYPE_P(element, T_HASH))
                rb_hash_foreach(element, masks_error, (VALUE)&masked);
            else if (RB_SYMBOL_P(element))
                masked = masked || element != ID2SYM(rb_intern("immediate"));
            else
                sent = sent || RB_FIXNUM_P(element) || RTEST(rb_obj_is_kind_of(element, rb_eIOError));
        }
    }
    return sent && !masked;
}

void hd_closer_unblocked(VALUE closer)
{
    if (!RTEST(rb_obj_is_fiber(closer)) || !error_will_be_raised()) return; /* then Ruby unlocks it */
    hd_hidden_objects mutexes = {.wanted = is_mutex};
    hd_find_hidden(closer, &mutexes);
    VALUE error = rb_errinfo();
    for (int i = 0, failed = 1; i < mutexes.count && failed; i++) {
        if (!RTEST(rb_mutex_locked_p(mutexes.found[i]))) continue;
        rb_protect(rb_mutex_unlock, mutexes.found[i], &failed); /* only the fiber that holds it can do this */
        if (failed) rb_set_errinfo(error);
    }
}

#else

void hd_closer_unblocked(VALUE closer)
{
}
#endif

bool hd_closer_waits(const hd_scheduler *scheduler)
{
    return hd_frame_find(scheduler, rb_fiber_current(), HD_FRAME_CLOSE);
}

typedef struct {
    hd_scheduler *scheduler;
    hd_wait_kind kind;
    VALUE subject;
} closer_wait;

static VALUE park(VALUE pointer)
{
    closer_wait *wait = (void *)pointer;
    hd_request request = {.kind = wait->kind, .subject = wait->subject, .deadline_ns = HD_NO_DEADLINE};
    if (wait->kind == HD_WAIT_FOR_SLEEP) request.deadline_ns = hd_clock_now() + LOOK_AGAIN_NS;
    hd_park(wait->scheduler, &request);
    return Qnil;
}

void hd_closer_wait(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject)
{
    closer_wait wait = {scheduler, kind, subject};
    VALUE raised = rb_ary_new();
    hd_caught caught = {.state = 1, .exception = Qnil};
    int killed = 0;
    for (int turns = 0; caught.state && turns < EXCEPTIONS_MAX; turns++) {
        hd_catch(park, (VALUE)&wait, &caught);
        if (!NIL_P(caught.exception))
            rb_ary_push(raised, caught.exception);
        else if (caught.state)
            killed = caught.state; /* its errinfo must stay as it is */
    }
    if (killed) rb_jump_tag(killed);
    if (caught.state) rb_exc_raise(rb_ary_entry(raised, 0)); /* it cannot wait */
    hd_raise_all_later(scheduler, raised);
}
