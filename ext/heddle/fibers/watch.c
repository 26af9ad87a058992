/* See watch.h. */
#include "watch.h"

#include <ruby/debug.h>

#include "os/thread.h"
#include "ruby/init.h"

/* The thread triggers the job again after this time. It doubles the time while the job is not called, because a long
 * method in C runs, or another Ruby thread. */
#define TRY_AGAIN_NS INT64_C(100000)

/* The thread outlasts the last watched scheduler by this time: another run is likely to follow. */
#define LINGER_NS HD_NS_PER_SECOND

static hd_list watched;
static bool started;      /* the thread exists, or begins */
static bool asleep;       /* it sleeps without a limit. Atomic, and written with the lock held */
static int64_t look_ns;   /* when it looks next. Guarded by the lock */
static bool job_runs;     /* see hd_watch_slice_job_runs. Atomic */
static pthread_cond_t bell;
static rb_postponed_job_handle_t slice_job, stall_job;

/* Forgets every scheduler. The child of a fork has no such thread, and its schedulers are the parent's. */
static void forget_all(void)
{
    started = asleep = job_runs = false;
    look_ns = HD_NO_DEADLINE;
    hd_condition_init(&bell);
    for (hd_node *node; (node = hd_list_first(&watched));) {
        hd_node_remove(node);
        HD_CONTAINER_OF(node, hd_scheduler, watch.node)->watch.on = false;
    }
}

static hd_fork_guard guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .reset = forget_all};

/* -- the looks ------------------------------------------------------------------------------------------------- */

/* Triggers the job if the run has lasted for a slice. Returns when to look again. */
static int64_t look_at_slice(hd_scheduler *scheduler, int64_t now_ns)
{
    int64_t slice_ns = scheduler->watch.slice_ns, ends_ns = scheduler->watch.seen_ns + slice_ns;
    if (now_ns < ends_ns) return hd_earlier(ends_ns, now_ns + slice_ns / 2);
    if (__atomic_load_n(&job_runs, __ATOMIC_ACQUIRE)) return now_ns + TRY_AGAIN_NS;
    unsigned refused = __atomic_load_n(&scheduler->watch.refused, __ATOMIC_RELAXED); /* stored before job_runs */
    if (refused != scheduler->watch.seen_refused) { /* the fiber will be at another place at the next look */
        scheduler->watch.seen_refused = refused;
        scheduler->watch.pause_ns = TRY_AGAIN_NS / 2;
        return now_ns + TRY_AGAIN_NS;
    }
    scheduler->watch.pause_ns = hd_earlier(2 * scheduler->watch.pause_ns, slice_ns);
    __atomic_store_n(&scheduler->watch.over, scheduler->watch.seen, __ATOMIC_RELAXED);
    rb_postponed_job_trigger(slice_job);
    return now_ns + scheduler->watch.pause_ns;
}

/* Triggers the job if the run has stalled the loop, once for each run. Returns when to look again. */
static int64_t look_at_stall(hd_scheduler *scheduler, int64_t now_ns)
{
    int64_t since_ns = __atomic_load_n(&scheduler->watch.since_ns, __ATOMIC_RELAXED);
    if (since_ns && since_ns != scheduler->watch.ordered_ns && now_ns - since_ns >= scheduler->watch.stall_ns) {
        scheduler->watch.ordered_ns = since_ns;
        rb_postponed_job_trigger(stall_job);
    }
    return now_ns + scheduler->watch.stall_ns / 4;
}

static int64_t look_at(hd_scheduler *scheduler, int64_t now_ns)
{
    if (__atomic_load_n(&scheduler->watch.rests, __ATOMIC_SEQ_CST)) return HD_NO_DEADLINE;
    unsigned run = __atomic_load_n(&scheduler->watch.run, __ATOMIC_RELAXED);
    if (run != scheduler->watch.seen) {
        scheduler->watch.seen = run;
        scheduler->watch.seen_ns = now_ns;
        scheduler->watch.pause_ns = TRY_AGAIN_NS / 2;
    }
    int64_t next_ns = scheduler->watch.slice_ns ? look_at_slice(scheduler, now_ns) : HD_NO_DEADLINE;
    return scheduler->watch.stall_ns ? hd_earlier(next_ns, look_at_stall(scheduler, now_ns)) : next_ns;
}

/* Looks at every scheduler, and notes when to look again. HD_NO_DEADLINE: no fiber runs. */
static void look(void)
{
    int64_t now_ns = hd_clock_machine();
    look_ns = HD_NO_DEADLINE;
    for (hd_node *node = hd_list_first(&watched); node; node = hd_list_after(&watched, node))
        look_ns = hd_earlier(look_ns, look_at(HD_CONTAINER_OF(node, hd_scheduler, watch.node), now_ns));
}

/* -- the thread ------------------------------------------------------------------------------------------------ */

/* `asleep` is set before the last look. So a scheduler that begins to run either finds it set, and wakes the thread, or
 * is found by that look. */
static void sleep_while_all_rest(void)
{
    __atomic_store_n(&asleep, true, __ATOMIC_SEQ_CST);
    look();
    if (look_ns == HD_NO_DEADLINE)
        while (asleep) pthread_cond_wait(&bell, &guard.lock);
    __atomic_store_n(&asleep, false, __ATOMIC_SEQ_CST);
}

static void *look_out(void *unused)
{
    pthread_mutex_lock(&guard.lock);
    for (;;) {
        if (hd_list_empty(&watched)) {
            look_ns = HD_NO_DEADLINE;
            bool called = hd_condition_wait(&bell, &guard.lock, hd_clock_machine() + LINGER_NS);
            if (!called && hd_list_empty(&watched)) break;
            continue;
        }
        look();
        if (look_ns == HD_NO_DEADLINE)
            sleep_while_all_rest();
        else
            hd_condition_wait(&bell, &guard.lock, look_ns);
    }
    started = false;
    pthread_mutex_unlock(&guard.lock);
    return NULL;
}

/* Called with the lock held. */
static void wake(void)
{
    __atomic_store_n(&asleep, false, __ATOMIC_SEQ_CST);
    pthread_cond_signal(&bell);
}

/* -- the schedulers --------------------------------------------------------------------------------------------- */

void hd_watch_run_begins(hd_scheduler *scheduler)
{
    if (scheduler->watch.stall_ns)
        __atomic_store_n(&scheduler->watch.since_ns, hd_clock_machine(), __ATOMIC_RELAXED);
    if (!scheduler->watch.rests) return;
    __atomic_store_n(&scheduler->watch.rests, false, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&asleep, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&guard.lock);
    wake();
    pthread_mutex_unlock(&guard.lock);
}

void hd_watch_rest_begins(hd_scheduler *scheduler)
{
    if (scheduler->watch.stall_ns) __atomic_store_n(&scheduler->watch.since_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&scheduler->watch.rests, true, __ATOMIC_SEQ_CST);
}

/* In how many ns the thread must look at a new scheduler for the first time. */
static int64_t first_look(const hd_scheduler *scheduler)
{
    return scheduler->watch.slice_ns ? scheduler->watch.slice_ns / 2 : scheduler->watch.stall_ns / 4;
}

void hd_watch_begin(hd_scheduler *scheduler)
{
    pthread_mutex_lock(&guard.lock);
    if (!scheduler->watch.on) {
        scheduler->watch.on = true;
        hd_list_push_back(&watched, &scheduler->watch.node);
    }
    if (!started) started = hd_thread_start(look_out, NULL) == 0;
    if (look_ns > hd_clock_machine() + first_look(scheduler)) wake(); /* most runs are over before that */
    pthread_mutex_unlock(&guard.lock);
}

void hd_watch_end(hd_scheduler *scheduler)
{
    if (!scheduler->watch.on) return;
    pthread_mutex_lock(&guard.lock);
    hd_node_remove(&scheduler->watch.node);
    scheduler->watch.on = false;
    if (asleep && hd_list_empty(&watched)) wake();
    pthread_mutex_unlock(&guard.lock);
}

void hd_watch_slice_job_runs(bool runs)
{
    __atomic_store_n(&job_runs, runs, __ATOMIC_RELEASE);
}

void hd_watch_slices(void (*job)(void *))
{
    slice_job = rb_postponed_job_preregister(0, job, NULL);
}

void hd_watch_stalls(void (*job)(void *))
{
    stall_job = rb_postponed_job_preregister(0, job, NULL);
}

bool hd_watch_has_slices(void)
{
    return slice_job != POSTPONED_JOB_HANDLE_INVALID;
}

bool hd_watch_has_stalls(void)
{
    return stall_job != POSTPONED_JOB_HANDLE_INVALID;
}

void hd_init_watch(void)
{
    hd_list_init(&watched);
    hd_condition_init(&bell);
    hd_fork_register(&guard);
}
