/* See overdue.h. Everything but the sleep runs with the GVL, which guards the struct. The lock guards what the sleep
 * uses: woken and look_ns. */
#include "overdue.h"

#include <pthread.h>
#include <stdlib.h>

#include "fibers/frame.h"
#include "os/thread.h"
#include "ruby/caught.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

#define IDLE_NS (2 * HD_NS_PER_SECOND)

/* The time until it tries to start the thread again after a failure. */
#define RETRY_NS HD_NS_PER_SECOND

/* GRACE_NS: the time that is left to the loop. LOOK_AGAIN_NS: how often it looks at code that it cannot interrupt. */
enum { GRACE_NS = 2 * HD_NS_PER_MS, LOOK_AGAIN_NS = 10 * HD_NS_PER_MS };

static VALUE plain_raise; /* Ruby's own Thread#raise */

/* -- what computes --------------------------------------------------------------------------------------------- */

/* When the next timeout may be overdue, in any fiber: each may be the next to compute. */
static int64_t next_look(const hd_scheduler *scheduler, int64_t now_ns)
{
    int64_t next_ns = hd_timers_next(&scheduler->reactor.limits);
    if (scheduler->pending.timeouts_due || next_ns <= now_ns - GRACE_NS) return now_ns + LOOK_AGAIN_NS;
    return next_ns == HD_NO_DEADLINE ? HD_NO_DEADLINE : next_ns + GRACE_NS;
}

static bool is_overdue(const hd_timeout *timeout, int64_t now_ns)
{
    if (!NIL_P(timeout->sent) || (!timeout->pending.due && timeout->timer.deadline_ns > now_ns - GRACE_NS))
        return false;
    hd_recipient recipient = {timeout->root, timeout->root, timeout->pending.began, true};
    return !hd_interrupt_masked_somewhere(timeout->pending.scheduler, timeout->pending.exception) &&
           hd_interrupt_mask(timeout->pending.scheduler, recipient, timeout->pending.exception) == HD_MASK_IMMEDIATE;
}

/* Finds the timeout that is overdue for longest in the fibers that run, because no others compute; or NULL. */
static hd_timeout *longest_overdue(const hd_scheduler *scheduler, int64_t now_ns)
{
    hd_timeout *longest = NULL;
    for (hd_pending *pending = NULL; (pending = hd_pending_next(scheduler, scheduler->running.root, pending));) {
        hd_timeout *one = pending->limits ? hd_timeout_of(pending) : NULL;
        bool longer = one && (!longest || one->timer.deadline_ns < longest->timer.deadline_ns);
        if (longer && is_overdue(one, now_ns)) longest = one;
    }
    return longest;
}

/* Is it in a system call that Heddle makes, such as a close? Such a call is short, and must be finished. */
static bool is_in_our_call(const hd_scheduler *scheduler)
{
    VALUE root = scheduler->running.root;
    return hd_frame_find(scheduler, root, HD_FRAME_INLINE) || hd_frame_find(scheduler, root, HD_FRAME_CLOSE);
}

/* Finds the timeout whose exception must be raised in the thread, because its fibers do not wait. They compute,
 * perhaps in a signal's handler on top of a wait, or are in a call that no hook sees: code in C without the GVL, a
 * Ractor, a wait in a blocking fiber. They must be seen twice without a wait in between. A fiber that has just come
 * back from a wait and holds something (bytes, a connection) is left alone, so that it is not lost. After a system
 * call, the next hook that the fiber calls raises the exception, too. If it calls none, the thread is interrupted,
 * as by Ruby's own Timeout. */
static hd_timeout *to_raise(hd_scheduler *scheduler, int64_t now_ns)
{
    if (!longest_overdue(scheduler, now_ns)) return NULL;
    const hd_wait *wait = hd_wait_of_chain(scheduler, scheduler->running.root);
    if (wait && wait->state != HD_WAIT_DONE && scheduler->reactor.rests) return NULL;
    if (!hd_fiber_runs(scheduler->running.root)) return NULL;
    bool in_call = hd_thread_in_system_call(scheduler->thread);
    hd_timeout *due = longest_overdue(scheduler, now_ns); /* it may have called Ruby code */
    if (!due) return NULL;
    if (in_call) hd_timeout_expire(due);
    if (in_call && is_in_our_call(scheduler)) return NULL;
    bool suspected = due->suspected && due->parks == scheduler->running.parks;
    due->suspected = true;
    due->parks = scheduler->running.parks;
    return suspected ? due : NULL;
}

/* Raises the exception of an overdue timeout in the thread of the scheduler if its fibers compute without ever waiting.
 * Returns when to look again, or HD_NO_DEADLINE. */
static int64_t raise_in_thread(hd_scheduler *scheduler, int64_t now_ns)
{
    hd_timeout *due = to_raise(scheduler, now_ns);
    if (!due) return next_look(scheduler, now_ns);
    uint64_t sequence = due->timer.sequence;
    VALUE exception = hd_timeout_exception(due); /* may call Ruby code: then the record may have gone with its stack */
    if (to_raise(scheduler, now_ns) != due || due->timer.sequence != sequence) return now_ns;
    hd_timeout_expire(due);
    due->sent = due->raised = exception;
    rb_funcall(plain_raise, rb_intern("bind_call"), 2, scheduler->thread, exception);
    return next_look(scheduler, now_ns);
}

static VALUE check_interrupts(VALUE unused)
{
    rb_thread_check_ints();
    return Qnil;
}

void hd_overdue_take_back(const hd_timeout *timeout)
{
    hd_caught caught;
    hd_catch(check_interrupts, Qnil, &caught);
    if (caught.exception != timeout->sent) hd_go_on(&caught);
}

/* -- the thread ------------------------------------------------------------------------------------------------ */

typedef struct {
    hd_list schedulers; /* the schedulers that have had a timeout */
    int64_t look_ns;    /* when the thread looks next */
    int64_t failed_ns;  /* when no thread could be started, or 0 */
    bool running;
    unsigned fork_generation;
    pthread_mutex_t lock; /* for the condition `woken` */
    pthread_cond_t wakeup;
    bool woken;
} overdue_thread;

static void free_thread(void *pointer)
{
    overdue_thread *ours = pointer;
    if (!hd_forked_since(ours->fork_generation))
        for (hd_node *node; (node = hd_list_first(&ours->schedulers));) hd_node_remove(node);
    free(ours);
}

static const struct rb_ractor_local_storage_type thread_type = {NULL, free_thread};
static rb_ractor_local_key_t thread_key;

static void start_anew(overdue_thread *ours)
{
    hd_condition_init(&ours->wakeup);
    pthread_mutex_init(&ours->lock, NULL);
    hd_list_init(&ours->schedulers);
    ours->running = ours->woken = false;
    ours->failed_ns = 0;
    ours->fork_generation = hd_fork_generation;
}

static overdue_thread *this_ractors(void)
{
    overdue_thread *ours = rb_ractor_local_storage_ptr(thread_key);
    if (!ours) {
        ours = calloc(1, sizeof(*ours));
        if (!ours) rb_memerror();
        start_anew(ours);
        rb_ractor_local_storage_ptr_set(thread_key, ours);
    }
    if (hd_forked_since(ours->fork_generation)) start_anew(ours); /* the thread is the parent's */
    return ours;
}

static void wake(void *pointer)
{
    overdue_thread *ours = pointer;
    pthread_mutex_lock(&ours->lock);
    ours->woken = true;
    pthread_cond_signal(&ours->wakeup);
    pthread_mutex_unlock(&ours->lock);
}

static void *sleep_without_gvl(void *pointer)
{
    overdue_thread *ours = pointer;
    pthread_mutex_lock(&ours->lock);
    while (!ours->woken && hd_condition_wait(&ours->wakeup, &ours->lock, ours->look_ns)) continue;
    ours->woken = false;
    pthread_mutex_unlock(&ours->lock);
    return NULL;
}

/* Looks at every scheduler; returns when to look again. */
static int64_t look(overdue_thread *ours, int64_t now_ns)
{
    int64_t look_ns = HD_NO_DEADLINE;
    for (hd_node *node = hd_list_first(&ours->schedulers); node;) {
        hd_scheduler *scheduler = HD_CONTAINER_OF(node, hd_scheduler, overdue_node);
        VALUE self = scheduler->self;
        look_ns = hd_earlier(look_ns, raise_in_thread(scheduler, now_ns));
        node = hd_list_after(&ours->schedulers, node);
        RB_GC_GUARD(self);
    }
    return look_ns;
}

static VALUE look_after_deadlines(VALUE pointer)
{
    overdue_thread *ours = (void *)pointer;
    for (int64_t idle_since = 0;;) {
        int64_t now_ns = hd_clock_now();
        ours->look_ns = look(ours, now_ns);
        if (ours->look_ns != HD_NO_DEADLINE) {
            idle_since = 0;
        }
        else {
            if (!idle_since) idle_since = now_ns;
            if (now_ns >= idle_since + IDLE_NS) return Qnil;
            ours->look_ns = idle_since + IDLE_NS;
        }
        rb_nogvl(sleep_without_gvl, ours, wake, ours, 0);
        rb_thread_check_ints();
    }
}

static VALUE no_longer_running(VALUE pointer)
{
    ((overdue_thread *)pointer)->running = false;
    return Qnil;
}

static VALUE thread_main(void *pointer)
{
    return rb_ensure(look_after_deadlines, (VALUE)pointer, no_longer_running, (VALUE)pointer);
}

static const char THREAD_NAME[] = "heddle timeouts";

static VALUE start_thread(VALUE pointer)
{
    VALUE thread = rb_thread_create(thread_main, (void *)pointer);
    rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr(THREAD_NAME));
    return thread;
}

/* A virtual clock stands still while a fiber computes, and another thread does not see it. */
void hd_overdue_register(hd_scheduler *scheduler)
{
    if (RB_LIKELY(hd_node_linked(&scheduler->overdue_node)) || scheduler->virtual_clock.on) return;
    hd_list_push_back(&this_ractors()->schedulers, &scheduler->overdue_node);
}

void hd_overdue_expect(hd_scheduler *scheduler, int64_t deadline_ns)
{
    if (RB_UNLIKELY(scheduler->virtual_clock.on)) return;
    overdue_thread *ours = this_ractors();
    if (ours->running && ours->look_ns <= deadline_ns + HD_NS_PER_MS) return;
    if (ours->running) {
        pthread_mutex_lock(&ours->lock);
        ours->look_ns = deadline_ns;
        pthread_mutex_unlock(&ours->lock);
        wake(ours);
        return;
    }
    int64_t now_ns = hd_clock_now();
    if (RB_UNLIKELY(ours->failed_ns) && now_ns - ours->failed_ns < RETRY_NS) return;
    VALUE error = rb_errinfo();
    int failed = !hd_thread_can_start();
    ours->running = true;
    ours->look_ns = deadline_ns;
    if (!failed) rb_protect(start_thread, (VALUE)ours, &failed);
    ours->failed_ns = failed ? now_ns : 0;
    if (!failed) return;
    ours->running = false; /* no thread could be started: timeouts still end waits */
    hd_restore_errinfo(error);
}

/* -- in a postponed job ------------------------------------------------------------------------------------------ */

/* The time that the thread has to raise an exception. It needs the GVL, for which others may wait, too. */
#define RAISED_WITHIN_NS (50 * HD_NS_PER_MS)

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t interrupted;
    bool is_interrupted;
} nap;

static void *nap_without_gvl(void *pointer)
{
    nap *ours = pointer;
    int64_t until_ns = hd_clock_machine() + RAISED_WITHIN_NS;
    pthread_mutex_lock(&ours->lock);
    while (!ours->is_interrupted && hd_condition_wait(&ours->interrupted, &ours->lock, until_ns)) continue;
    pthread_mutex_unlock(&ours->lock);
    return NULL;
}

static void end_nap(void *pointer)
{
    nap *ours = pointer;
    pthread_mutex_lock(&ours->lock);
    ours->is_interrupted = true;
    pthread_cond_signal(&ours->interrupted);
    pthread_mutex_unlock(&ours->lock);
}

/* Sleeps until the thread is interrupted, and leaves the interrupt to the caller. */
static void sleep_until_interrupted(void)
{
    nap ours = {.lock = PTHREAD_MUTEX_INITIALIZER};
    hd_condition_init(&ours.interrupted);
    rb_nogvl(nap_without_gvl, &ours, end_nap, &ours, RB_NOGVL_INTR_FAIL);
    pthread_cond_destroy(&ours.interrupted);
}

/* The thread raises an exception only after it has seen the fiber compute twice. The caller of this function computes,
 * which counts as the first time. */
bool hd_overdue_raise_here(hd_scheduler *scheduler)
{
    int64_t now_ns = hd_clock_now();
    int64_t next_ns = hd_timers_next(&scheduler->reactor.limits);
    if (!scheduler->pending.timeouts_due && next_ns > now_ns - GRACE_NS) return false;
    hd_timeout *due = longest_overdue(scheduler, now_ns);
    if (!due || !this_ractors()->running) return false;
    due->suspected = true;
    due->parks = scheduler->running.parks;
    hd_overdue_expect(scheduler, now_ns - HD_NS_PER_SECOND);
    sleep_until_interrupted();
    return !NIL_P(due->sent);
}

void hd_init_overdue(void)
{
    plain_raise = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern("raise")));
    rb_gc_register_mark_object(plain_raise);
    thread_key = rb_ractor_local_storage_ptr_newkey(&thread_type);
    rb_define_const(hd_cScheduler, "TIMEOUTS_THREAD_NAME", rb_obj_freeze(rb_str_new_cstr(THREAD_NAME)));
}
