/* See stalls.h. */
#include "stalls.h"

#include <ruby/debug.h>
#include <time.h>

#include "os/fork.h"
#include "os/thread.h"
#include "ruby/init.h"

static hd_list watched;
static int64_t limit_ns;
static bool started; /* the thread that looks without the GVL */
static rb_postponed_job_handle_t look_job;

/* Forgets every scheduler. The child of a fork has no such thread, and its schedulers are the parent's. */
static void forget_all(void)
{
    started = false;
    for (hd_node *node; (node = hd_list_first(&watched));) {
        hd_node_remove(node);
        HD_CONTAINER_OF(node, hd_scheduler, watch.node)->watch.on = false;
    }
}

static hd_fork_guard guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .reset = forget_all};

/* Is there a fiber that runs for too long and was not yet looked at? */
static bool finds_stall(void)
{
    bool found = false;
    int64_t now_ns = hd_clock_machine();
    pthread_mutex_lock(&guard.lock);
    for (hd_node *node = hd_list_first(&watched); node; node = hd_list_after(&watched, node)) {
        hd_scheduler *scheduler = HD_CONTAINER_OF(node, hd_scheduler, watch.node);
        int64_t since_ns = __atomic_load_n(&scheduler->watch.since_ns, __ATOMIC_RELAXED);
        if (!since_ns || since_ns == scheduler->watch.ordered_ns || now_ns - since_ns < limit_ns) continue;
        scheduler->watch.ordered_ns = since_ns;
        found = true;
    }
    pthread_mutex_unlock(&guard.lock);
    return found;
}

static void *look_out(void *unused)
{
    int64_t pause_ns = limit_ns / 4;
    const struct timespec pause = {pause_ns / HD_NS_PER_SECOND, pause_ns % HD_NS_PER_SECOND};
    (void)unused;
    for (;;) {
        nanosleep(&pause, NULL);
        if (finds_stall()) rb_postponed_job_trigger(look_job);
    }
    return NULL;
}

static VALUE look(VALUE unused)
{
    (void)unused;
    return rb_funcall(rb_const_get(hd_mHeddle, rb_intern("Stalls")), rb_intern("look"), 0);
}

/* Runs in the thread that has the GVL, between two instructions. */
static void look_soon(void *unused)
{
    int ignored;
    VALUE error = rb_errinfo();
    (void)unused;
    rb_protect(look, Qnil, &ignored);
    rb_set_errinfo(error);
}

void hd_stalls_unwatch(hd_scheduler *scheduler)
{
    if (!scheduler->watch.on) return;
    pthread_mutex_lock(&guard.lock);
    hd_node_remove(&scheduler->watch.node);
    pthread_mutex_unlock(&guard.lock);
    scheduler->watch.on = false;
}

/* Watches the scheduler from now on. A look follows when a fiber has run for this number of seconds. */
static VALUE scheduler_watch(VALUE self, VALUE seconds)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (scheduler->watch.on) return Qnil;
    int64_t ns = (int64_t)(NUM2DBL(seconds) * HD_NS_PER_SECOND);
    pthread_mutex_lock(&guard.lock);
    limit_ns = ns;
    scheduler->watch.on = true;
    hd_list_push_back(&watched, &scheduler->watch.node);
    if (!started) started = hd_thread_start(look_out, NULL) == 0;
    pthread_mutex_unlock(&guard.lock);
    return Qnil;
}

/* @return [Array(Fiber, Float, Integer), nil] the fiber that the loop has switched to (it runs, or has resumed the
 * fiber that does), for how many seconds, and since when, in ns; nil: no fiber runs */
static VALUE scheduler_running(VALUE self)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    int64_t since_ns = scheduler->watch.since_ns;
    if (!since_ns) return Qnil;
    VALUE seconds = DBL2NUM((double)(hd_clock_machine() - since_ns) / HD_NS_PER_SECOND);
    return rb_ary_new_from_args(3, scheduler->running.root, seconds, LL2NUM(since_ns));
}

void hd_init_stalls(void)
{
    hd_list_init(&watched);
    hd_fork_register(&guard);
    look_job = rb_postponed_job_preregister(0, look_soon, NULL);
    rb_define_private_method(hd_cScheduler, "watch", scheduler_watch, 1);
    rb_define_private_method(hd_cScheduler, "running", scheduler_running, 0);
}
