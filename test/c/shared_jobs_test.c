/* os/worker.h: jobs that ask for the same run once, and each gets the result, whichever of them are released, and
 * when; lookups have a pool of their own, and a slow name leaves the others their workers.
 * Runs under: address, thread. */
#include <pthread.h>

#include "harness.h"
#include "os/worker.h"

typedef struct {
    hd_job job;
    waiter waiter;
    int key, result;
    pthread_mutex_t *gate; /* the job waits until it can take this */
} test_job;

static int alive, running, runs; /* atomic */
static hd_inbox inbox;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int load(int *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void run_job(hd_job *job)
{
    test_job *test = (test_job *)job;
    __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL);
    if (test->gate) {
        pthread_mutex_lock(test->gate);
        pthread_mutex_unlock(test->gate);
    }
    __atomic_add_fetch(&runs, 1, __ATOMIC_ACQ_REL);
    test->result = test->key * 2;
    __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
}

static void free_job(hd_job *job)
{
    __atomic_sub_fetch(&alive, 1, __ATOMIC_ACQ_REL);
    memset(job, 0xEE, sizeof(test_job));
    free(job);
}

static bool same_key(const hd_job *job, const hd_job *other)
{
    return ((const test_job *)job)->key == ((const test_job *)other)->key;
}

static void share_result(hd_job *job, const hd_job *other)
{
    ((test_job *)job)->result = ((const test_job *)other)->result;
}

static test_job *submit(int key, pthread_mutex_t *wait_for)
{
    test_job *test = calloc(1, sizeof(*test));
    CHECK(test);
    test->key = key;
    test->gate = wait_for;
    test->job.pool = HD_POOL_LOOKUPS;
    test->job.run = run_job;
    test->job.free = free_job;
    test->job.same = same_key;
    test->job.share = share_result;
    __atomic_add_fetch(&alive, 1, __ATOMIC_ACQ_REL);
    CHECK_EQ(0, hd_wait_begin(&test->waiter.wait, &reactor, HD_WAIT_FOR_WORKER, (hd_word)test, HD_NO_DEADLINE));
    CHECK_EQ(0, hd_worker_submit(&test->job, &inbox, &test->waiter.wait));
    return test;
}

static void give_up(test_job **test)
{
    hd_wait_end(&(*test)->waiter.wait);
    hd_worker_release(&(*test)->job);
    *test = NULL;
}

static void await_result(test_job **test)
{
    while (!(*test)->waiter.woken) {
        hd_reactor_poll_nogvl(&reactor, hd_reactor_timeout(&reactor) < 50 * HD_NS_PER_MS ? 0 : 50 * HD_NS_PER_MS);
        hd_reactor_reap(&reactor);
        hd_inbox_drain(&inbox);
        run_ready();
    }
    CHECK_EQ(HD_WOKEN_BY_EVENT, (*test)->waiter.wait.wake);
    CHECK_EQ((*test)->key * 2, (*test)->result);
    give_up(test);
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
    __atomic_store_n(&runs, 0, __ATOMIC_RELEASE);
}

static void close_inbox(void)
{
    await_count(&alive, 0);
    CHECK(hd_list_empty(&inbox.finished));
    CHECK_EQ(0, load(&inbox.pending));
    close_setting();
}

TEST(the_same_runs_once)
{
    enum { JOBS = 500 };
    static test_job *jobs[JOBS];
    open_inbox();
    pthread_mutex_lock(&gate);
    for (int i = 0; i < JOBS; i++) jobs[i] = submit(7, &gate);
    await_count(&running, 1);
    test_job *other = submit(8, NULL); /* not held up by 500 of another kind */
    await_result(&other);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < JOBS; i++) await_result(&jobs[i]);
    CHECK_EQ(2, load(&runs));
    test_job *later = submit(7, NULL); /* what has ended is not kept */
    await_result(&later);
    CHECK_EQ(3, load(&runs));
    close_inbox();
}

TEST(the_first_is_released_while_it_runs)
{
    open_inbox();
    pthread_mutex_lock(&gate);
    test_job *first = submit(1, &gate), *second = submit(1, &gate), *third = submit(1, &gate);
    await_count(&running, 1);
    give_up(&first);
    give_up(&second);
    pthread_mutex_unlock(&gate);
    await_result(&third);
    CHECK_EQ(1, load(&runs));
    close_inbox();
}

/* Fills the pool, so that what comes next stays in the queue. */
static void fill(test_job **jobs)
{
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) jobs[i] = submit(1000 + i, &gate);
    await_count(&running, HD_LOOKUP_WORKERS_MAX);
}

TEST(the_first_is_released_in_the_queue)
{
    test_job *jobs[HD_LOOKUP_WORKERS_MAX];
    int threads, queued;
    open_inbox();
    pthread_mutex_lock(&gate);
    fill(jobs);
    test_job *first = submit(1, NULL), *last = submit(2, NULL);
    test_job *second = submit(1, NULL), *third = submit(1, NULL), *fourth = submit(1, NULL);
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(2, queued);
    CHECK_EQ(HD_LOOKUP_WORKERS_MAX, threads);
    give_up(&first); /* the second has its place now */
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(2, queued);
    give_up(&third);
    give_up(&last);
    pthread_mutex_unlock(&gate);
    await_result(&second);
    await_result(&fourth);
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) await_result(&jobs[i]);
    CHECK_EQ(HD_LOOKUP_WORKERS_MAX + 1, load(&runs));
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(0, queued);
    close_inbox();
}

/* Names that nobody answers for hold up no file, and neither the lookups of single families. */
TEST(other_jobs_have_their_own_pool)
{
    static const hd_pool others[] = {HD_POOL_FILES, HD_POOL_IPV4_LOOKUPS, HD_POOL_IPV6_LOOKUPS};
    test_job *jobs[HD_LOOKUP_WORKERS_MAX];
    open_inbox();
    pthread_mutex_lock(&gate);
    fill(jobs);
    for (int i = 0; i < 3; i++) {
        test_job *other = calloc(1, sizeof(*other));
        other->key = 3;
        other->job.pool = others[i];
        other->job.run = run_job;
        other->job.free = free_job;
        __atomic_add_fetch(&alive, 1, __ATOMIC_ACQ_REL);
        CHECK_EQ(0, hd_wait_begin(&other->waiter.wait, &reactor, HD_WAIT_FOR_WORKER, (hd_word)other, HD_NO_DEADLINE));
        CHECK_EQ(0, hd_worker_submit(&other->job, &inbox, &other->waiter.wait));
        await_result(&other);
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) await_result(&jobs[i]);
    close_inbox();
}

TEST(a_wait_that_comes_later)
{
    open_inbox();
    test_job *job = submit(5, NULL);
    hd_worker_watch(&job->job, NULL); /* nobody waits when it ends */
    while (!hd_worker_finished(&job->job)) usleep(100);
    if (chance(50)) hd_inbox_drain(&inbox);
    CHECK_EQ(0, run_ready());
    hd_worker_watch(&job->job, &job->waiter.wait);
    await_result(&job);
    close_inbox();
}

TEST(random_releases)
{
    enum { JOBS = 3000, AT_ONCE = 60 };
    static test_job *jobs[AT_ONCE];
    open_inbox();
    for (int i = 0; i < JOBS; i++) {
        test_job **slot = &jobs[rnd(AT_ONCE)];
        if (!*slot)
            *slot = submit((int)rnd(8), NULL);
        else if (chance(30))
            give_up(slot);
        else if (chance(30))
            await_result(slot);
    }
    for (int k = 0; k < AT_ONCE; k++)
        if (jobs[k]) await_result(&jobs[k]);
    close_inbox();
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(the_same_runs_once);
    RUN(the_first_is_released_while_it_runs);
    RUN(the_first_is_released_in_the_queue);
    RUN(other_jobs_have_their_own_pool);
    for (int i = 0; i < 20; i++) RUN(a_wait_that_comes_later);
    RUN(random_releases);
    return test_finish();
}
