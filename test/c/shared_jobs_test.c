/* os/worker.h: jobs that ask for the same run once, and each gets the result, whichever of them are released, and
 * when; lookups have a pool of their own, and a slow name leaves the others their workers.
 * Runs under: address, thread. */
#include "jobs.h"

static bool same_number(const hd_job *job, const hd_job *other)
{
    return ((const test_job *)job)->number == ((const test_job *)other)->number;
}

static void copy_result(hd_job *job, const hd_job *other)
{
    ((test_job *)job)->result = ((const test_job *)other)->result;
}

static const hd_job_type lookup_type = {run_job, free_job, same_number, copy_result};

static test_job *look_up(int number, pthread_mutex_t *wait_for)
{
    test_job *test = new_job(number);
    test->gate = wait_for;
    hd_job_init(&test->job, &lookup_type, HD_POOL_LOOKUPS);
    submit(test);
    return test;
}

static void await_result(test_job *test)
{
    await_jobs(&test, 1);
    finish_job(test);
}

TEST(the_same_runs_once)
{
    enum { JOBS = 500 };
    static test_job *jobs[JOBS];
    open_inbox();
    pthread_mutex_lock(&gate);
    for (int i = 0; i < JOBS; i++) jobs[i] = look_up(7, &gate);
    await_count(&running, 1);
    test_job *other = look_up(8, NULL); /* not held up by 500 of another kind */
    await_result(other);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < JOBS; i++) await_result(jobs[i]);
    CHECK_EQ(2, load(&runs));
    test_job *later = look_up(7, NULL); /* what has ended is not kept */
    await_result(later);
    CHECK_EQ(3, load(&runs));
    close_inbox();
}

TEST(the_first_is_released_while_it_runs)
{
    open_inbox();
    pthread_mutex_lock(&gate);
    test_job *first = look_up(1, &gate), *second = look_up(1, &gate), *third = look_up(1, &gate);
    await_count(&running, 1);
    give_up(first);
    give_up(second);
    pthread_mutex_unlock(&gate);
    await_result(third);
    CHECK_EQ(1, load(&runs));
    close_inbox();
}

/* Fills the pool, so that what comes next stays in the queue. */
static void fill(test_job **jobs)
{
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) jobs[i] = look_up(1000 + i, &gate);
    await_count(&running, HD_LOOKUP_WORKERS_MAX);
}

TEST(the_first_is_released_in_the_queue)
{
    test_job *jobs[HD_LOOKUP_WORKERS_MAX];
    int threads, queued;
    open_inbox();
    pthread_mutex_lock(&gate);
    fill(jobs);
    test_job *first = look_up(1, NULL), *last = look_up(2, NULL);
    test_job *second = look_up(1, NULL), *third = look_up(1, NULL), *fourth = look_up(1, NULL);
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(2, queued);
    CHECK_EQ(HD_LOOKUP_WORKERS_MAX, threads);
    give_up(first); /* the second has its place now */
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(2, queued);
    give_up(third);
    give_up(last);
    pthread_mutex_unlock(&gate);
    await_result(second);
    await_result(fourth);
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) await_result(jobs[i]);
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
        test_job *other = new_job(3);
        other->job.pool = others[i];
        submit(other);
        await_result(other);
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < HD_LOOKUP_WORKERS_MAX; i++) await_result(jobs[i]);
    close_inbox();
}

TEST(a_wait_that_comes_later)
{
    open_inbox();
    test_job *job = look_up(5, NULL);
    hd_job_set_wait(&job->job, NULL); /* nobody waits when it ends */
    while (!hd_job_finished(&job->job)) usleep(100);
    if (chance(50)) hd_inbox_drain(&inbox);
    CHECK_EQ(0, run_ready());
    hd_job_set_wait(&job->job, &job->waiter.wait);
    await_result(job);
    close_inbox();
}

/* Another thread may ask for the same while no thread can be started for the first one, which then runs inline. */
TEST(followed_by_another_and_run_inline)
{
    open_inbox();
    pthread_mutex_lock(&gate);
    test_job *first = look_up(9, &gate), *second = look_up(9, NULL);
    await_count(&running, 1);
    test_job *inline_job = new_job(9);
    hd_node_remove(&second->job.node);
    hd_list_push_back(&inline_job->job.followers, &second->job.node);
    hd_job_run_inline(&inline_job->job);
    await_result(second);
    hd_job_release(&inline_job->job);
    pthread_mutex_unlock(&gate);
    await_result(first);
    close_inbox();
}

TEST(random_releases)
{
    enum { JOBS = 3000, AT_ONCE = 60 };
    static test_job *jobs[AT_ONCE];
    open_inbox();
    for (int i = 0; i < JOBS; i++) {
        test_job **slot = &jobs[rnd(AT_ONCE)];
        if (!*slot) {
            *slot = look_up((int)rnd(8), NULL);
            continue;
        }
        bool give = chance(30);
        if (!give && !chance(30)) continue;
        (give ? give_up : await_result)(*slot);
        *slot = NULL;
    }
    for (int k = 0; k < AT_ONCE; k++)
        if (jobs[k]) await_result(jobs[k]);
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
    RUN(followed_by_another_and_run_inline);
    RUN(random_releases);
    return test_finish();
}
