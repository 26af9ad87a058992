/* See watch.h. All but the sleep runs with the GVL, which guards the struct. */
#include "watch.h"

#include <pthread.h>
#include <stdlib.h>

#include "timeout.h"

#define IDLE_NS (2 * HD_NS_PER_SECOND)

/* How long it does without a thread after there was none to be had. */
#define RETRY_NS HD_NS_PER_SECOND

typedef struct {
    hd_list schedulers; /* those that have had a timeout */
    int64_t look_ns;    /* when the thread looks next */
    int64_t failed_ns;  /* when there was no thread to be had, or 0 */
    bool running;
    unsigned fork_generation;
    pthread_mutex_t lock; /* of woken */
    pthread_cond_t wakeup;
    bool woken;
} watch;

static void free_watch(void *pointer)
{
    watch *watch = pointer;
    for (hd_node *node; (node = hd_list_first(&watch->schedulers));) hd_node_remove(node);
    free(watch);
}

static const struct rb_ractor_local_storage_type watch_type = {NULL, free_watch};
static rb_ractor_local_key_t watch_key;

static void start_anew(watch *watch)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wakeup, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&watch->lock, NULL);
    hd_list_init(&watch->schedulers);
    watch->running = watch->woken = false;
    watch->failed_ns = 0;
    watch->fork_generation = hd_fork_generation;
}

static watch *get_watch(void)
{
    watch *watch = rb_ractor_local_storage_ptr(watch_key);
    if (!watch) {
        watch = calloc(1, sizeof(*watch));
        if (!watch) rb_memerror();
        start_anew(watch);
        rb_ractor_local_storage_ptr_set(watch_key, watch);
    }
    if (hd_forked_since(watch->fork_generation)) start_anew(watch); /* the thread is the parent's */
    return watch;
}

static void wake(void *pointer)
{
    watch *watch = pointer;
    pthread_mutex_lock(&watch->lock);
    watch->woken = true;
    pthread_cond_signal(&watch->wakeup);
    pthread_mutex_unlock(&watch->lock);
}

static void *sleep_without_gvl(void *pointer)
{
    watch *watch = pointer;
    struct timespec until = {watch->look_ns / HD_NS_PER_SECOND, watch->look_ns % HD_NS_PER_SECOND};
    pthread_mutex_lock(&watch->lock);
    while (!watch->woken && pthread_cond_timedwait(&watch->wakeup, &watch->lock, &until) == 0) continue;
    watch->woken = false;
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Looks at every scheduler; returns when to look again. */
static int64_t look(watch *watch, int64_t now_ns)
{
    int64_t look_ns = HD_NO_DEADLINE;
    for (hd_node *node = hd_list_first(&watch->schedulers); node;) {
        hd_scheduler *scheduler = HD_CONTAINER_OF(node, hd_scheduler, watch_node);
        VALUE self = scheduler->self;
        look_ns = hd_earlier(look_ns, hd_timeouts_strike(scheduler, now_ns));
        node = hd_list_after(&watch->schedulers, node);
        RB_GC_GUARD(self);
    }
    return look_ns;
}

static VALUE watch_deadlines(VALUE pointer)
{
    watch *watch = (void *)pointer;
    for (int64_t idle_since = 0;;) {
        int64_t now_ns = hd_clock_now();
        watch->look_ns = look(watch, now_ns);
        if (watch->look_ns != HD_NO_DEADLINE) {
            idle_since = 0;
        }
        else {
            if (!idle_since) idle_since = now_ns;
            if (now_ns >= idle_since + IDLE_NS) return Qnil;
            watch->look_ns = idle_since + IDLE_NS;
        }
        rb_nogvl(sleep_without_gvl, watch, wake, watch, 0);
        rb_thread_check_ints();
    }
}

static VALUE no_longer_running(VALUE pointer)
{
    ((watch *)pointer)->running = false;
    return Qnil;
}

static VALUE thread_main(void *pointer)
{
    return rb_ensure(watch_deadlines, (VALUE)pointer, no_longer_running, (VALUE)pointer);
}

static VALUE start_thread(VALUE pointer)
{
    VALUE thread = rb_thread_create(thread_main, (void *)pointer);
    rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr("heddle timeouts"));
    return thread;
}

void hd_watch_deadline(hd_scheduler *scheduler, int64_t deadline_ns)
{
    watch *watch = get_watch();
    if (!hd_node_linked(&scheduler->watch_node)) hd_list_push_back(&watch->schedulers, &scheduler->watch_node);
    if (watch->running && watch->look_ns <= deadline_ns + HD_NS_PER_MS) return;
    if (watch->running) {
        watch->look_ns = deadline_ns;
        wake(watch);
        return;
    }
    int64_t now_ns = hd_clock_now();
    if (RB_UNLIKELY(watch->failed_ns) && now_ns - watch->failed_ns < RETRY_NS) return;
    VALUE error = rb_errinfo();
    int failed = !hd_thread_can_start();
    watch->running = true;
    watch->look_ns = deadline_ns;
    if (!failed) rb_protect(start_thread, (VALUE)watch, &failed);
    watch->failed_ns = failed ? now_ns : 0;
    if (!failed) return;
    watch->running = false; /* no thread to be had: timeouts end waits, as ever */
    rb_set_errinfo(error);
}

void hd_init_watch(void)
{
    watch_key = rb_ractor_local_storage_ptr_newkey(&watch_type);
}
