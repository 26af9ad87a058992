/* See stats.h. The counts are plain numbers in the scheduler; objects are made only when a program asks. */
#include "stats.h"

#include <math.h>

#include "fibers/pending/pending.h"
#include "ruby/init.h"

typedef struct {
    uint64_t started, polls, closes, cancels;
    hd_histogram latency;
    unsigned fork_generation; /* of the process to which the sums belong */
} totals;

/* -- the schedulers that have ended --------------------------------------------------------------------------- */

static const struct rb_ractor_local_storage_type ended_type = {NULL, free};
static rb_ractor_local_key_t ended_key;

static totals *ended_here(void)
{
    totals *ended = rb_ractor_local_storage_ptr(ended_key);
    if (!ended) {
        ended = calloc(1, sizeof(*ended));
        if (!ended) rb_memerror();
        ended->fork_generation = hd_fork_generation;
        rb_ractor_local_storage_ptr_set(ended_key, ended);
    }
    if (hd_forked_since(ended->fork_generation)) *ended = (totals){.fork_generation = hd_fork_generation};
    return ended;
}

void hd_stats_keep(const hd_scheduler *scheduler)
{
    totals *ended = ended_here();
    ended->started += scheduler->fibers.count;
    ended->polls += scheduler->reactor.polls;
    ended->closes += scheduler->counted.closes;
    ended->cancels += scheduler->counted.cancels;
    hd_histogram_merge(&ended->latency, &scheduler->reactor.latency);
}

/* -- for Ruby ------------------------------------------------------------------------------------------------- */

enum { RUNNING, READY, IN_IO, SLEEPING, BLOCKED, IN_PROCESS, IN_WORKER, STATES };

static const char *const NAMES[STATES] = {
    [RUNNING] = "running", [READY] = "ready",        [IN_IO] = "io",         [SLEEPING] = "sleep",
    [BLOCKED] = "blocked", [IN_PROCESS] = "process", [IN_WORKER] = "worker",
};

static const int STATE_OF_KIND[] = {
    [HD_WAIT_FOR_BLOCK] = BLOCKED, [HD_WAIT_FOR_THREAD] = BLOCKED,     [HD_WAIT_FOR_SLEEP] = SLEEPING,
    [HD_WAIT_FOR_IO] = IN_IO,      [HD_WAIT_FOR_SELECT] = IN_IO,       [HD_WAIT_FOR_PROCESS] = IN_PROCESS,
    [HD_WAIT_YIELDED] = READY,     [HD_WAIT_FOR_WORKER] = IN_WORKER,
};

static VALUE hash_of(const totals *totals)
{
    VALUE hash = rb_hash_new(), counts = rb_ary_new_capa(HD_HISTOGRAM_BUCKETS);
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS; i++) rb_ary_push(counts, ULL2NUM(totals->latency.counts[i]));
    hd_set(hash, "started", ULL2NUM(totals->started));
    hd_set(hash, "polls", ULL2NUM(totals->polls));
    hd_set(hash, "closes", ULL2NUM(totals->closes));
    hd_set(hash, "cancels", ULL2NUM(totals->cancels));
    hd_set(hash, "latency_counts", counts);
    hd_set(hash, "latency_sum", hd_seconds((int64_t)totals->latency.sum_ns));
    hd_set(hash, "latency_max", hd_seconds(totals->latency.max_ns));
    return hash;
}

/* Is it the wait of the caller of Heddle.run, before the main task waits for the first time? */
static bool is_caller(const hd_wait *wait)
{
    return wait->kind == HD_WAIT_YIELDED && RTEST(rb_funcall(hd_wait_fiber(wait), rb_intern("blocking?"), 0));
}

static void count_state(hd_map_node *node, void *states)
{
    const hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    if (is_caller(wait)) return;
    int state = wait->state == HD_WAIT_PARKED ? STATE_OF_KIND[wait->kind]
                : wait->state == HD_WAIT_READY ? READY
                                               : RUNNING; /* it will soon leave its wait */
    ((size_t *)states)[state]++;
}

/* Does a fiber of the scheduler run that has no wait? */
static bool one_runs(hd_scheduler *scheduler)
{
    VALUE root = scheduler->running.root;
    bool loop = scheduler->home.waits && root == scheduler->home.fiber;
    return scheduler->running.scheduled && !scheduler->reactor.rests && !NIL_P(root) && !loop &&
           RTEST(rb_fiber_alive_p(root)) && !hd_wait_of_chain(scheduler, root);
}

/* @return [Hash{Symbol => Integer}] how many tasks and fibers are in each state */
static VALUE scheduler_states(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    size_t states[STATES] = {0};
    hd_map_each(&scheduler->reactor.waits, count_state, states);
    states[RUNNING] += one_runs(scheduler);
    VALUE hash = rb_hash_new();
    for (int i = 0; i < STATES; i++) hd_set(hash, NAMES[i], SIZET2NUM(states[i]));
    return hash;
}

/* @return [Hash{Symbol => Object}] the scheduler's counts so far; seconds, and the number of latencies in each
 * bucket */
static VALUE scheduler_counted(VALUE self)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    totals sums = {.started = scheduler->fibers.count, .polls = scheduler->reactor.polls,
                   .closes = scheduler->counted.closes, .cancels = scheduler->counted.cancels,
                   .latency = scheduler->reactor.latency};
    return hash_of(&sums);
}

/* @return [Hash{Symbol => Object}] the counts of the schedulers of this Ractor that have ended */
static VALUE scheduler_s_ended_counted(VALUE class)
{
    return hash_of(ended_here());
}

/* @return [Array(Integer, Integer)] the workers of this process, and the jobs that wait for one */
static VALUE scheduler_s_workers(VALUE class)
{
    int workers, queued;
    hd_worker_stats(&workers, &queued);
    return rb_assoc_new(INT2NUM(workers), INT2NUM(queued));
}

/* @return [Array<Float>] for each bucket of a latency, the number of seconds that its latencies stay below */
static VALUE scheduler_s_latency_bounds(VALUE class)
{
    VALUE bounds = rb_ary_new_capa(HD_HISTOGRAM_BUCKETS);
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS - 1; i++) rb_ary_push(bounds, hd_seconds(hd_histogram_bound(i)));
    return rb_ary_push(bounds, rb_float_new(HUGE_VAL));
}

void hd_init_stats(void)
{
    ended_key = rb_ractor_local_storage_ptr_newkey(&ended_type);
    rb_define_private_method(hd_cScheduler, "states", scheduler_states, 0);
    rb_define_private_method(hd_cScheduler, "counted", scheduler_counted, 0);
    VALUE class_methods = rb_singleton_class(hd_cScheduler);
    rb_define_private_method(class_methods, "ended_counted", scheduler_s_ended_counted, 0);
    rb_define_private_method(class_methods, "workers", scheduler_s_workers, 0);
    rb_define_private_method(class_methods, "latency_bounds", scheduler_s_latency_bounds, 0);
}
