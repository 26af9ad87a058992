/* Lists what the fibers of a scheduler wait for, for Heddle.dump. */

#include "fibers/pending/timeout.h"
#include "fibers/stats.h"
#include "fibers/unblock_relay.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

static const char *const KINDS[] = {
    [HD_WAIT_FOR_BLOCK] = "block",     [HD_WAIT_FOR_THREAD] = "thread",   [HD_WAIT_FOR_SLEEP] = "sleep",
    [HD_WAIT_FOR_IO] = "io",           [HD_WAIT_FOR_SELECT] = "select",   [HD_WAIT_FOR_PROCESS] = "process",
    [HD_WAIT_FOR_WORKER] = "worker",   [HD_WAIT_YIELDED] = "turn",
};

static VALUE ios_of(const hd_wait *wait)
{
    VALUE ios = rb_ary_new();
    for (size_t i = 0; i < wait->interests_count; i++) {
        const hd_interest *interest = &wait->interests[i];
        if (!NIL_P((VALUE)interest->io))
            rb_ary_push(ios, rb_assoc_new((VALUE)interest->io, INT2FIX(interest->events)));
    }
    return ios;
}

/* Returns the object that a wait waits for, or nil. A blocker that Ruby hides (the Mutex of an autoload) must not be
 * shown. */
static VALUE subject_of(const hd_wait *wait)
{
    VALUE subject = (VALUE)wait->subject;
    return hd_is_hidden(subject) ? Qnil : subject;
}

typedef struct {
    VALUE waits;
    int64_t now_ns;
} wait_list;

static void push_wait(hd_map_node *node, void *pointer)
{
    const wait_list *list = pointer;
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    int64_t now_ns = list->now_ns;
    VALUE hash = rb_hash_new();
    rb_ary_push(list->waits, hash);
    hd_set(hash, "fiber", (VALUE)hd_wait_fiber(wait));
    hd_set(hash, "root", (VALUE)wait->root);
    hd_set(hash, "state", ID2SYM(rb_intern(wait->state == HD_WAIT_PARKED ? "parked" : "ready")));
    hd_set(hash, "kind", ID2SYM(rb_intern(KINDS[wait->kind])));
    hd_set(hash, "subject", subject_of(wait));
    hd_set(hash, "ios", ios_of(wait));
    bool locks = wait->kind == HD_WAIT_FOR_BLOCK && hd_data_type((VALUE)wait->subject) == hd_mutex_type;
    hd_set(hash, "holder", locks ? ULL2NUM(hd_mutex_owner((VALUE)wait->subject)) : Qnil);
    hd_set(hash, "as_holders", rb_assoc_new(ULL2NUM(hd_as_owner((VALUE)hd_wait_fiber(wait))),
                                            ULL2NUM(hd_as_owner((VALUE)wait->root))));
    hd_set(hash, "since", hd_seconds(now_ns - wait->since_ns));
    hd_set(hash, "left", hd_timer_set(&wait->timer) ? hd_seconds(wait->timer.deadline_ns - now_ns) : Qnil);
}

/* @return [Array<Hash>] every wait: fiber, root (the fiber that is held up by it), state, kind, subject, ios ([io,
 *   events]), since and left (seconds; nil without a deadline) */
static VALUE scheduler_waits(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    wait_list list = {rb_ary_new(), hd_scheduler_now(scheduler)};
    hd_map_each(&scheduler->reactor.waits, push_wait, &list);
    return list.waits;
}

/* @return [Hash] the fibers that are in Timeout.timeout => the seconds until the first of their timeouts */
static VALUE scheduler_timeouts(VALUE self)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    int64_t now_ns = hd_scheduler_now(scheduler);
    VALUE set = hd_timeouts_set(scheduler), hash = rb_hash_new();
    for (long i = 0; i < RARRAY_LEN(set); i++) {
        VALUE root = RARRAY_AREF(RARRAY_AREF(set, i), 0);
        VALUE left = hd_seconds(NUM2LL(RARRAY_AREF(RARRAY_AREF(set, i), 1)) - now_ns);
        VALUE known = rb_hash_lookup(hash, root);
        if (NIL_P(known) || RFLOAT_VALUE(left) < RFLOAT_VALUE(known)) rb_hash_aset(hash, root, left);
    }
    return hash;
}

/* @return [Hash] the numbers of interests that the kernel holds, of timers, of workers, and of jobs that wait for a
 *   worker */
static VALUE scheduler_counts(VALUE self)
{
    hd_reactor *reactor = &hd_scheduler_get(self)->reactor;
    int workers, queued;
    hd_worker_stats(&workers, &queued);
    VALUE hash = rb_hash_new();
    hd_set(hash, "armed", SIZET2NUM(reactor->armed));
    hd_set(hash, "timers", SIZET2NUM(reactor->timers.count + reactor->limits.count));
    hd_set(hash, "workers", INT2NUM(workers));
    hd_set(hash, "queued", INT2NUM(queued));
    return hash;
}

/* Must the thread look at something before it waits on: an exception, a wake-up? */
static VALUE scheduler_interrupted_p(VALUE self, VALUE thread)
{
    return HD_BOOL(rb_thread_interrupted(thread));
}

void hd_init_dump(void)
{
    rb_define_private_method(hd_cScheduler, "interrupted?", scheduler_interrupted_p, 1);
    rb_define_private_method(hd_cScheduler, "waits", scheduler_waits, 0);
    rb_define_private_method(hd_cScheduler, "timeouts", scheduler_timeouts, 0);
    rb_define_private_method(hd_cScheduler, "counts", scheduler_counts, 0);
}
