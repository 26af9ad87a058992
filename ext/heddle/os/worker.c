/* The worker pool of worker.h. One mutex guards everything here; it is held only for a few list operations, and
 * never while a job runs. */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static hd_list queue;
static int queued, threads, idle;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&work_came, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The child has no workers, and the jobs in the queue are the parent's. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    make_condition();
    hd_list_init(&queue);
    queued = threads = idle = 0;
}

static void prepare(void)
{
    hd_list_init(&queue);
    make_condition();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void hd_inbox_init(hd_inbox *inbox, hd_reactor *reactor)
{
    hd_list_init(&inbox->finished);
    inbox->reactor = reactor;
    inbox->pending = 0;
}

static void finish(hd_job *job)
{
    if (job->state == HD_JOB_ABANDONED) {
        job->free(job);
        return;
    }
    hd_inbox *inbox = job->inbox;
    job->state = HD_JOB_FINISHED;
    hd_list_push_back(&inbox->finished, &job->node);
    __atomic_add_fetch(&inbox->pending, 1, __ATOMIC_RELEASE);
    inbox->reactor->ops->wake(inbox->reactor->backend);
}

/* False when there was nothing to do for long: the worker ends. */
static bool await_work(void)
{
    struct timespec until;
    int64_t until_ns = hd_clock_now() + HD_WORKER_IDLE_SECONDS * HD_NS_PER_SECOND;
    until.tv_sec = until_ns / HD_NS_PER_SECOND;
    until.tv_nsec = until_ns % HD_NS_PER_SECOND;
    idle++;
    int error = 0;
    while (hd_list_empty(&queue) && error == 0) error = pthread_cond_timedwait(&work_came, &lock, &until);
    idle--;
    return !hd_list_empty(&queue);
}

static void *worker_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!hd_list_empty(&queue) || await_work()) {
        hd_job *job = HD_CONTAINER_OF(hd_list_first(&queue), hd_job, node);
        hd_node_remove(&job->node);
        queued--;
        job->state = HD_JOB_RUNNING;
        pthread_mutex_unlock(&lock);
        job->run(job);
        pthread_mutex_lock(&lock);
        finish(job);
    }
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* With every signal blocked: they are for Ruby's threads. */
static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, worker_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!error) threads++;
    return -error;
}

int hd_worker_submit(hd_job *job, hd_inbox *inbox, hd_wait *wait)
{
    int error = 0;
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&lock);
    hd_node_init(&job->node);
    job->inbox = inbox;
    job->wait = wait;
    if (idle <= queued && threads < HD_WORKERS_MAX) error = start_thread();
    if (threads > 0) error = 0; /* fewer workers than wished for still do the work */
    if (!error) {
        job->state = HD_JOB_QUEUED;
        hd_list_push_back(&queue, &job->node);
        queued++;
        pthread_cond_signal(&work_came);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

void hd_worker_release(hd_job *job)
{
    bool free_now = true;
    pthread_mutex_lock(&lock);
    switch (job->state) {
    case HD_JOB_QUEUED:
        hd_node_remove(&job->node);
        queued--;
        break;
    case HD_JOB_RUNNING:
        job->state = HD_JOB_ABANDONED;
        free_now = false;
        break;
    case HD_JOB_FINISHED:
        if (hd_node_linked(&job->node)) {
            hd_node_remove(&job->node);
            __atomic_sub_fetch(&job->inbox->pending, 1, __ATOMIC_RELEASE);
        }
        break;
    case HD_JOB_NEW:
    case HD_JOB_ABANDONED:
        break;
    }
    pthread_mutex_unlock(&lock);
    if (free_now) job->free(job);
}

void hd_inbox_drain(hd_inbox *inbox)
{
    if (!__atomic_load_n(&inbox->pending, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&lock);
    hd_node *node;
    while ((node = hd_list_first(&inbox->finished))) {
        hd_node_remove(node);
        __atomic_sub_fetch(&inbox->pending, 1, __ATOMIC_RELEASE);
        hd_wait_settle(HD_CONTAINER_OF(node, hd_job, node)->wait, HD_WOKEN_BY_EVENT);
    }
    pthread_mutex_unlock(&lock);
}

void hd_worker_stats(int *thread_count, int *queue_length)
{
    pthread_mutex_lock(&lock);
    *thread_count = threads;
    *queue_length = queued;
    pthread_mutex_unlock(&lock);
}
