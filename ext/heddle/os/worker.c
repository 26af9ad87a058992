/* The worker pools; see worker.h. One mutex guards everything here. It is held only for a few list operations and
 * copies, never while a job runs. */
#include "worker.h"

#include <pthread.h>

#include "thread.h"

typedef struct {
    hd_list queue, running;
    int queued, threads, idle, limit;
    bool starting; /* a thread will soon begin */
    pthread_cond_t work_came;
} worker_pool;

static worker_pool pools[HD_POOLS] = {
    [HD_POOL_FILES] = {.limit = HD_WORKERS_MAX},
    [HD_POOL_LOOKUPS] = {.limit = HD_LOOKUP_WORKERS_MAX},
    [HD_POOL_IPV4_LOOKUPS] = {.limit = HD_FAMILY_WORKERS_MAX},
    [HD_POOL_IPV6_LOOKUPS] = {.limit = HD_FAMILY_WORKERS_MAX},
};

/* Makes the pools. The child of a fork has no workers, and the jobs in the queues are the parent's. */
static void make_pools(void)
{
    for (int i = 0; i < HD_POOLS; i++) {
        hd_list_init(&pools[i].queue);
        hd_list_init(&pools[i].running);
        pools[i].queued = pools[i].threads = pools[i].idle = 0;
        pools[i].starting = false;
        hd_condition_init(&pools[i].work_came);
    }
}

static hd_fork_guard pools_guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .reset = make_pools};
static pthread_mutex_t *const lock = &pools_guard.lock;

__attribute__((constructor)) static void prepare(void)
{
    make_pools();
    hd_fork_register(&pools_guard);
}

void hd_inbox_init(hd_inbox *inbox, hd_reactor *reactor)
{
    hd_list_init(&inbox->finished);
    inbox->reactor = reactor;
    inbox->pending = 0;
    inbox->closed = false;
}

/* Sets the state of a job. hd_job_finished reads it without the lock. */
static void set_state(hd_job *job, hd_job_state state)
{
    __atomic_store_n(&job->state, state, __ATOMIC_RELEASE);
}

static void deliver(hd_job *job)
{
    hd_inbox *inbox = job->inbox;
    bool awaited = job->wait && !inbox->closed;
    set_state(job, HD_JOB_FINISHED);
    if (!awaited) return; /* the job may be gone by now: see hd_job_release */
    hd_list_push_back(&inbox->finished, &job->node);
    __atomic_add_fetch(&inbox->pending, 1, __ATOMIC_RELEASE);
    inbox->reactor->ops->wake(inbox->reactor->backend);
}

static void deliver_to_followers(hd_job *job)
{
    for (hd_node *node; (node = hd_list_first(&job->followers));) {
        hd_job *follower = HD_CONTAINER_OF(node, hd_job, node);
        hd_node_remove(node);
        follower->type->copy_result(follower, job);
        deliver(follower);
    }
}

/* Gives the result to all jobs that want it. Releases the lock while it frees a job that nobody wants. */
static void finish(hd_job *job)
{
    hd_node_remove(&job->node);
    deliver_to_followers(job);
    if (job->state != HD_JOB_ABANDONED) {
        deliver(job);
        return;
    }
    pthread_mutex_unlock(lock);
    job->type->free(job);
    pthread_mutex_lock(lock);
}

/* Waits for a job. False when none has come for long: the worker ends. */
static bool await_work(worker_pool *own)
{
    int64_t until_ns = hd_clock_machine() + HD_WORKER_IDLE_SECONDS * HD_NS_PER_SECOND;
    own->idle++;
    while (hd_list_empty(&own->queue) && hd_condition_wait(&own->work_came, lock, until_ns)) continue;
    own->idle--;
    return !hd_list_empty(&own->queue);
}

static void *worker_main(void *pointer);

/* Starts a worker. Releases the lock for a while. */
static int start_thread(worker_pool *own)
{
    own->starting = true;
    own->threads++;
    pthread_mutex_unlock(lock);
    int error = hd_thread_start(worker_main, own);
    pthread_mutex_lock(lock);
    if (error) {
        own->starting = false;
        own->threads--;
    }
    return error;
}

static bool too_few(const worker_pool *own)
{
    return own->idle < own->queued && own->threads < own->limit && !own->starting;
}

static void *worker_main(void *pointer)
{
    worker_pool *own = pointer;
    pthread_mutex_lock(lock);
    own->starting = false;
    while (!hd_list_empty(&own->queue) || await_work(own)) {
        hd_job *job = HD_CONTAINER_OF(hd_list_first(&own->queue), hd_job, node);
        hd_node_remove(&job->node);
        own->queued--;
        job->started_ns = hd_clock_machine();
        hd_list_push_front(&own->running, &job->node);
        if (too_few(own)) start_thread(own); /* so a caller that submits many jobs waits for one start only */
        pthread_mutex_unlock(lock);
        job->type->run(job);
        pthread_mutex_lock(lock);
        finish(job);
    }
    own->threads--;
    pthread_mutex_unlock(lock);
    return NULL;
}

static hd_job *same_in(const hd_list *list, const hd_job *job)
{
    for (hd_node *node = hd_list_first(list); node; node = hd_list_after(list, node)) {
        hd_job *other = HD_CONTAINER_OF(node, hd_job, node);
        if (other->type == job->type && job->type->same(job, other)) return other;
    }
    return NULL;
}

/* Finds the job whose result this one may have. A job that was begun long ago does not count, because things may
 * have changed since. The latest is first among the running jobs. */
static hd_job *find_same(const worker_pool *own, const hd_job *job)
{
    hd_job *other = same_in(&own->queue, job);
    if (other) return other;
    other = same_in(&own->running, job);
    if (other && hd_clock_machine() - other->started_ns > HD_SHARED_SECONDS * HD_NS_PER_SECOND) return NULL;
    return other;
}

/* Puts a job into the queue, and starts a worker if there are too few. If that fails, the job stays in the queue when a
 * worker exists or has taken it. Otherwise the job is taken out again, and the error is returned. */
static int enqueue(worker_pool *own, hd_job *job)
{
    set_state(job, HD_JOB_SUBMITTED);
    hd_list_push_back(&own->queue, &job->node);
    own->queued++;
    int error = too_few(own) ? start_thread(own) : 0;
    if (!error || own->threads > 0 || job->started_ns) return 0;
    hd_node_remove(&job->node);
    own->queued--;
    set_state(job, HD_JOB_NEW);
    return error;
}

void hd_job_init(hd_job *job, const hd_job_type *type, hd_pool pool)
{
    *job = (hd_job){.type = type, .pool = pool, .fork_generation = hd_fork_generation};
    hd_list_init(&job->followers);
}

int hd_job_submit(hd_job *job, hd_inbox *inbox, hd_wait *wait)
{
    int error = 0;
    pthread_mutex_lock(lock);
    job->inbox = inbox;
    job->wait = wait;
    job->had_wait = wait;
    hd_job *other = job->type->same ? find_same(&pools[job->pool], job) : NULL;
    if (other) {
        set_state(job, HD_JOB_FOLLOWING);
        job->followed = other;
        hd_list_push_back(&other->followers, &job->node);
    } else {
        error = enqueue(&pools[job->pool], job);
    }
    pthread_mutex_unlock(lock);
    /* Not earlier: the worker would wake only to wait for the lock. */
    if (!other && !error) pthread_cond_signal(&pools[job->pool].work_came);
    return error;
}

void hd_job_run_inline(hd_job *job)
{
    job->type->run(job);
    pthread_mutex_lock(lock);
    deliver_to_followers(job); /* others may have followed it while it was in the queue, until the start failed */
    pthread_mutex_unlock(lock);
    set_state(job, HD_JOB_FINISHED);
}

void hd_job_set_wait(hd_job *job, hd_wait *wait)
{
    if (hd_forked_since(job->fork_generation)) return;
    if (wait) job->had_wait = true;
    pthread_mutex_lock(lock);
    job->wait = wait;
    bool over = job->state == HD_JOB_FINISHED && !hd_node_linked(&job->node);
    pthread_mutex_unlock(lock);
    if (over && wait) hd_wait_settle(wait, HD_WOKEN_BY_EVENT);
}

bool hd_job_finished(hd_job *job)
{
    return __atomic_load_n(&job->state, __ATOMIC_ACQUIRE) == HD_JOB_FINISHED || hd_forked_since(job->fork_generation);
}

/* Takes a job off the list that it is in. False: it stays, because a worker runs it, or others want its result. */
static bool withdraw(hd_job *job)
{
    bool submitted = job->state == HD_JOB_SUBMITTED || job->state == HD_JOB_ABANDONED;
    if (submitted && (job->started_ns || !hd_list_empty(&job->followers))) {
        set_state(job, HD_JOB_ABANDONED);
        return false;
    }
    if (submitted) pools[job->pool].queued--;
    if (!hd_node_linked(&job->node)) return true;
    hd_node_remove(&job->node);
    if (job->state == HD_JOB_FINISHED) __atomic_sub_fetch(&job->inbox->pending, 1, __ATOMIC_RELEASE);
    return true;
}

void hd_job_release(hd_job *job)
{
    /* Its worker has forgotten it. The lock is not taken, because that worker most likely still holds it. */
    if (hd_forked_since(job->fork_generation) || (!job->had_wait && hd_job_finished(job))) {
        job->type->free(job);
        return;
    }
    pthread_mutex_lock(lock);
    hd_job *followed = job->state == HD_JOB_FOLLOWING ? job->followed : NULL;
    bool over = withdraw(job), followed_over = followed && followed->state == HD_JOB_ABANDONED && withdraw(followed);
    pthread_mutex_unlock(lock);
    if (over) job->type->free(job);
    if (followed_over) followed->type->free(followed);
}

void hd_inbox_drain(hd_inbox *inbox)
{
    if (!__atomic_load_n(&inbox->pending, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(lock);
    hd_node *node;
    while ((node = hd_list_first(&inbox->finished))) {
        hd_node_remove(node);
        __atomic_sub_fetch(&inbox->pending, 1, __ATOMIC_RELEASE);
        hd_job *job = HD_CONTAINER_OF(node, hd_job, node);
        if (job->wait) hd_wait_settle(job->wait, HD_WOKEN_BY_EVENT);
    }
    pthread_mutex_unlock(lock);
}

static void forget_waits(const hd_list *jobs, const hd_inbox *inbox)
{
    for (hd_node *node = hd_list_first(jobs); node; node = hd_list_after(jobs, node)) {
        hd_job *job = HD_CONTAINER_OF(node, hd_job, node);
        if (job->inbox == inbox) job->wait = NULL;
        forget_waits(&job->followers, inbox);
    }
}

void hd_inbox_close(hd_inbox *inbox)
{
    pthread_mutex_lock(lock);
    inbox->closed = true;
    for (int i = 0; i < HD_POOLS; i++) {
        forget_waits(&pools[i].queue, inbox);
        forget_waits(&pools[i].running, inbox);
    }
    for (hd_node *node; (node = hd_list_first(&inbox->finished));) hd_node_remove(node);
    __atomic_store_n(&inbox->pending, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(lock);
}

void hd_worker_stats(int *thread_count, int *queue_length)
{
    pthread_mutex_lock(lock);
    *thread_count = *queue_length = 0;
    for (int i = 0; i < HD_POOLS; i++) {
        *thread_count += pools[i].threads;
        *queue_length += pools[i].queued;
    }
    pthread_mutex_unlock(lock);
}
