/* What the tests of the workers share: jobs that count themselves and may be held up, and a reactor with an inbox for
 * what they have finished. */
#pragma once

#include <pthread.h>

#include "harness.h"
#include "os/worker.h"

typedef struct {
    hd_job job;
    waiter waiter;
    int number, result;
    pthread_mutex_t *gate; /* the job waits until it can take this */
} test_job;

static int alive, running, running_most, runs; /* atomic */
static hd_inbox inbox;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int load(int *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void run_job(hd_job *job)
{
    test_job *test = (test_job *)job;
    int now = __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL), most = load(&running_most);
    while (now > most && !__atomic_compare_exchange_n(&running_most, &most, now, false, __ATOMIC_ACQ_REL,
                                                      __ATOMIC_ACQUIRE))
        continue;
    if (test->gate) {
        pthread_mutex_lock(test->gate);
        pthread_mutex_unlock(test->gate);
    }
    __atomic_add_fetch(&runs, 1, __ATOMIC_ACQ_REL);
    test->result = test->number * 2;
    __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
}

static void free_job(hd_job *job)
{
    __atomic_sub_fetch(&alive, 1, __ATOMIC_ACQ_REL);
    memset(job, 0xEE, sizeof(test_job));
    free(job);
}

static const hd_job_type test_job_type = {.run = run_job, .free = free_job};

static test_job *new_job(int number)
{
    test_job *test = calloc(1, sizeof(*test));
    CHECK(test);
    test->number = number;
    hd_job_init(&test->job, &test_job_type, HD_POOL_FILES);
    __atomic_add_fetch(&alive, 1, __ATOMIC_ACQ_REL);
    return test;
}

static void submit(test_job *test)
{
    CHECK_EQ(0, hd_wait_begin(&test->waiter.wait, &reactor, HD_WAIT_FOR_WORKER, (hd_word)test, HD_NO_DEADLINE));
    CHECK_EQ(0, hd_job_submit(&test->job, &inbox, &test->waiter.wait));
}

static void give_up(test_job *test)
{
    hd_wait_end(&test->waiter.wait);
    hd_job_release(&test->job);
}

static void finish_job(test_job *test)
{
    CHECK_EQ(1, test->waiter.woken);
    CHECK_EQ(HD_WOKEN_BY_EVENT, test->waiter.wait.wake);
    CHECK_EQ(test->number * 2, test->result);
    give_up(test);
}

static int turn_with_inbox(void)
{
    hd_reactor_poll_nogvl(&reactor, hd_reactor_timeout(&reactor) < 50 * HD_NS_PER_MS ? 0 : 50 * HD_NS_PER_MS);
    hd_reactor_reap(&reactor);
    hd_inbox_drain(&inbox);
    return run_ready();
}

static void await_jobs(test_job **jobs, int count)
{
    for (int i = 0; i < count; i++)
        while (jobs[i] && !jobs[i]->waiter.woken) turn_with_inbox();
}

static void await_count(int *value, int expected)
{
    for (int i = 0; i < 5000 && load(value) != expected; i++) usleep(1000);
    CHECK_EQ(expected, load(value));
}

static void open_inbox(void)
{
    CHECK_EQ(0, load(&alive));
    open_setting(&settings[2]); /* epoll: it is everywhere */
    hd_inbox_init(&inbox, &reactor);
    __atomic_store_n(&running_most, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&runs, 0, __ATOMIC_RELEASE);
}

static void close_inbox(void)
{
    await_count(&alive, 0);
    CHECK(hd_list_empty(&inbox.finished));
    CHECK_EQ(0, load(&inbox.pending));
    close_setting();
}
