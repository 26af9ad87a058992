/* os/worker.h: jobs of several reactors on the pool; released while queued, while running, when finished and when
 * drained; the limit of threads; a fork while jobs run; workers that go when they have no work.
 * Runs under: address, thread. */
#include <dirent.h>

#include "jobs.h"
#include "os/fork.h"
#include "os/lookup.h"
#include "os/read_write.h"
#include "os/thread.h"

static void check_queue_empty(void)
{
    int threads, queued;
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(0, queued);
    CHECK_AT_LEAST(threads, HD_WORKERS_MAX);
}

TEST(one_job)
{
    open_inbox();
    for (int i = 0; i < 3; i++) {
        test_job *job = new_job(21 + i);
        submit(job);
        await_jobs(&job, 1);
        finish_job(job);
    }
    check_queue_empty();
    close_inbox();
}

TEST(many_jobs)
{
    enum { JOBS = 2000 };
    static test_job *jobs[JOBS];
    open_inbox();
    for (int i = 0; i < JOBS; i++) submit(jobs[i] = new_job(i));
    await_jobs(jobs, JOBS);
    for (int i = 0; i < JOBS; i++) finish_job(jobs[i]);
    check_queue_empty();
    close_inbox();
}

enum { TOO_MANY = HD_WORKERS_MAX + 10 };

/* Jobs that all wait at the gate, which the caller opens: as many as there can be threads run. */
static void submit_too_many(test_job **jobs)
{
    open_inbox();
    pthread_mutex_lock(&gate);
    for (int i = 0; i < TOO_MANY; i++) {
        jobs[i] = new_job(i);
        jobs[i]->gate = &gate;
        submit(jobs[i]);
    }
    await_count(&running, HD_WORKERS_MAX);
}

static void finish_too_many(test_job **jobs)
{
    pthread_mutex_unlock(&gate);
    await_jobs(jobs, TOO_MANY);
    for (int i = 0; i < TOO_MANY; i++)
        if (jobs[i]) finish_job(jobs[i]);
    check_queue_empty();
    close_inbox();
}

/* Jobs that block take a thread each, up to the limit; the rest wait their turn and are not lost. */
TEST(the_pool_grows_to_its_limit)
{
    test_job *jobs[TOO_MANY];
    submit_too_many(jobs);
    int threads, queued;
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(HD_WORKERS_MAX, threads);
    CHECK_EQ(TOO_MANY - HD_WORKERS_MAX, queued);
    finish_too_many(jobs);
    CHECK_EQ(HD_WORKERS_MAX, load(&running_most));
}

TEST(released_while_queued)
{
    test_job *jobs[TOO_MANY];
    submit_too_many(jobs);
    for (int i = TOO_MANY - 1; i >= HD_WORKERS_MAX; i -= 2) { /* every other one of those in the queue */
        give_up(jobs[i]);
        jobs[i] = NULL;
    }
    CHECK_EQ(TOO_MANY - 5, load(&alive)); /* freed at once */
    finish_too_many(jobs);
}

/* The reactor, its inbox and the wait may be gone when the worker is done. */
TEST(released_while_running)
{
    open_inbox();
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 5; i++) {
        test_job *job = new_job(i);
        job->gate = &gate;
        submit(job);
        await_count(&running, i + 1);
        give_up(job);
    }
    CHECK_EQ(5, load(&alive));
    close_setting();
    memset(&inbox, 0xEE, sizeof(inbox));
    memset(&reactor, 0xEE, sizeof(reactor));
    pthread_mutex_unlock(&gate);
    await_count(&alive, 0);
}

TEST(released_when_finished_but_not_drained)
{
    open_inbox();
    test_job *jobs[3];
    for (int i = 0; i < 3; i++) submit(jobs[i] = new_job(i));
    await_count(&inbox.pending, 3);
    give_up(jobs[1]);
    CHECK_EQ(2, load(&inbox.pending));
    jobs[1] = NULL;
    await_jobs(jobs, 3);
    finish_job(jobs[0]), finish_job(jobs[2]);
    close_inbox();
}

/* A fiber that got an exception in the meantime: the job's end does not wake it again. */
TEST(settled_by_another_cause)
{
    open_inbox();
    test_job *job = new_job(1);
    submit(job);
    CHECK(settle_with_exception(&job->waiter.wait, 7));
    await_count(&inbox.pending, 1);
    hd_inbox_drain(&inbox);
    CHECK_EQ(1, run_ready());
    CHECK_EQ(HD_WOKEN_BY_EXCEPTION, job->waiter.wait.wake);
    give_up(job);
    close_inbox();
}

static bool same_number(const hd_job *job, const hd_job *other)
{
    return ((const test_job *)job)->number == ((const test_job *)other)->number;
}

static void copy_result(hd_job *job, const hd_job *other)
{
    ((test_job *)job)->result = ((const test_job *)other)->result;
}

static const hd_job_type shared_type = {run_job, free_job, same_number, copy_result};

/* The jobs of fibers that were left behind when their scheduler was closed: running, following and queued. When the
 * process ends, the inbox is freed before they are finished. */
TEST(finished_after_the_inbox_was_closed)
{
    enum { FOLLOWER = TOO_MANY };
    test_job *jobs[TOO_MANY + 1];
    submit_too_many(jobs);
    jobs[FOLLOWER] = new_job(0);
    hd_job_init(&jobs[FOLLOWER]->job, &shared_type, HD_POOL_FILES);
    jobs[0]->job.type = &shared_type;
    submit(jobs[FOLLOWER]);
    hd_inbox_close(&inbox);
    hd_reactor_close(&reactor);
    memset(&inbox, 0, sizeof(inbox));
    pthread_mutex_unlock(&gate);
    for (int i = 0; i <= TOO_MANY; i++) {
        while (!hd_job_finished(&jobs[i]->job)) usleep(100);
        give_up(jobs[i]);
    }
    hd_inbox_init(&inbox, &reactor);
    close_inbox();
}

/* One that nobody waits for any more, as a lookup that the GC frees after its scheduler. */
TEST(released_after_the_inbox_was_freed)
{
    open_inbox();
    test_job *job = new_job(1);
    submit(job);
    await_count(&inbox.pending, 1);
    hd_job_set_wait(&job->job, NULL);
    hd_inbox_close(&inbox);
    CHECK_EQ(0, load(&inbox.pending));
    memset(&inbox, 0, sizeof(inbox));
    give_up(job);
    hd_inbox_init(&inbox, &reactor);
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
            submit(*slot = new_job(i));
        } else if (chance(30)) {
            give_up(*slot);
            *slot = NULL;
        }
        if (chance(10)) turn_with_inbox();
        for (int k = 0; k < AT_ONCE; k++)
            if (jobs[k] && jobs[k]->waiter.woken) {
                finish_job(jobs[k]);
                jobs[k] = NULL;
            }
    }
    await_jobs(jobs, AT_ONCE);
    for (int k = 0; k < AT_ONCE; k++)
        if (jobs[k]) finish_job(jobs[k]);
    check_queue_empty();
    close_inbox();
}

/* Several threads with a reactor and an inbox each use the one pool. */
typedef struct {
    hd_reactor reactor;
    hd_map ios;
    hd_inbox inbox;
    uint64_t random;
} owner;

static void *use_pool(void *pointer)
{
    enum { JOBS = 400 };
    owner *own = pointer;
    CHECK_EQ(0, hd_map_init(&own->ios));
    CHECK_EQ(0, hd_reactor_init(&own->reactor, &own->ios, 0));
    CHECK_EQ(0, hd_reactor_open(&own->reactor, &hd_backend_epoll, false));
    hd_inbox_init(&own->inbox, &own->reactor);
    for (int i = 0; i < JOBS; i++) {
        test_job *job = new_job(i);
        CHECK_EQ(0, hd_wait_begin(&job->waiter.wait, &own->reactor, HD_WAIT_FOR_WORKER, 8, HD_NO_DEADLINE));
        CHECK_EQ(0, hd_job_submit(&job->job, &own->inbox, &job->waiter.wait));
        if ((own->random = own->random * 6364136223846793005u + 1) >> 62 == 0) {
            give_up(job);
            continue;
        }
        hd_wait *woken;
        while (!(woken = hd_next_ready(&own->reactor))) {
            hd_reactor_poll_nogvl(&own->reactor, HD_NO_DEADLINE); /* a lost wake would hang here */
            hd_reactor_reap(&own->reactor);
            hd_inbox_drain(&own->inbox);
        }
        CHECK(woken == &job->waiter.wait);
        job->waiter.woken = 1;
        finish_job(job);
    }
    hd_reactor_close(&own->reactor);
    hd_reactor_free(&own->reactor);
    hd_map_free(&own->ios);
    return NULL;
}

TEST(several_threads_share_the_pool)
{
    enum { OWNERS = 4 };
    pthread_t threads[OWNERS];
    owner *owners = calloc(OWNERS, sizeof(*owners));
    for (int i = 0; i < OWNERS; i++) {
        owners[i].random = rnd64();
        CHECK_EQ(0, pthread_create(&threads[i], NULL, use_pool, &owners[i]));
    }
    for (int i = 0; i < OWNERS; i++) pthread_join(threads[i], NULL);
    free(owners); /* an inbox that a worker still touches is seen here */
    await_count(&alive, 0);
}

/* The child has no workers and none of the parent's jobs, and starts its own pool; the parent notices nothing. */
static void start_anew(void)
{
    int threads, queued;
    hd_worker_stats(&threads, &queued);
    CHECK_EQ(0, threads);
    CHECK_EQ(0, queued);
    hd_reactor_forget(&reactor, hd_fork_generation);
    CHECK_EQ(0, hd_reactor_open(&reactor, &hd_backend_epoll, false));
    hd_inbox_init(&inbox, &reactor);
    for (int i = 0; i < 20; i++) {
        test_job *job = new_job(i);
        submit(job);
        await_jobs(&job, 1);
        finish_job(job);
    }
}

TEST(a_fork_while_jobs_run)
{
    enum { JOBS = HD_WORKERS_MAX + 5 };
    test_job *jobs[JOBS];
    open_inbox();
    pthread_mutex_lock(&gate);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = new_job(i);
        jobs[i]->gate = &gate;
        submit(jobs[i]);
    }
    await_count(&running, HD_WORKERS_MAX);
    for (int i = 0; i < 3; i++) in_child(start_anew);
    pthread_mutex_unlock(&gate);
    await_jobs(jobs, JOBS);
    for (int i = 0; i < JOBS; i++) finish_job(jobs[i]);
    check_queue_empty();
    close_inbox();
}

TEST(forks_at_any_moment)
{
    enum { JOBS = 200 };
    static test_job *jobs[JOBS];
    open_inbox();
    for (int i = 0; i < JOBS; i++) {
        submit(jobs[i] = new_job(i));
        if (i % 20 == 0) in_child(start_anew);
    }
    await_jobs(jobs, JOBS);
    for (int i = 0; i < JOBS; i++) finish_job(jobs[i]);
    close_inbox();
}

/* Whoever goes on in the child frees what it has, in whatever state the parent's worker has left it. */
static test_job *left[5];
static hd_rw_job *left_rw;
static int left_fd;

static void release_all(void)
{
    CHECK_EQ(-1, fcntl(left_fd, F_GETFD));
    for (int i = 0; i < 5; i++) {
        CHECK(hd_job_finished(&left[i]->job));
        hd_job_set_wait(&left[i]->job, NULL);
        hd_job_release(&left[i]->job);
    }
    CHECK_EQ(HD_WORKERS_MAX - 1, load(&alive)); /* jobs that fill the pool */
    __atomic_store_n(&alive, 0, __ATOMIC_RELEASE);
    CHECK_EQ(-EINTR, left_rw->result);
    hd_job_release(&left_rw->job);
    start_anew();
    CHECK_EQ(0, load(&alive));
}

TEST(released_in_the_child_of_a_fork)
{
    enum { NEW, RUNNING, FOLLOWING, QUEUED, FINISHED };
    test_job *filling[HD_WORKERS_MAX - 1];
    open_inbox();
    left[FINISHED] = new_job(1);
    submit(left[FINISHED]);
    await_count(&inbox.pending, 1);
    pthread_mutex_lock(&gate);
    for (int i = RUNNING; i <= FOLLOWING; i++) {
        left[i] = new_job(2);
        left[i]->gate = &gate;
        hd_job_init(&left[i]->job, &shared_type, HD_POOL_FILES);
        submit(left[i]);
        await_count(&running, 1);
    }
    for (int i = 0; i < HD_WORKERS_MAX - 1; i++) {
        filling[i] = new_job(i);
        filling[i]->gate = &gate;
        submit(filling[i]);
    }
    await_count(&running, HD_WORKERS_MAX);
    left[NEW] = new_job(3);
    submit(left[QUEUED] = new_job(5));
    CHECK((left_rw = hd_rw_job_new(HD_READ, 0, NULL, 1, 0)));
    left_fd = left_rw->fd.number;
    CHECK_EQ(0, hd_job_submit(&left_rw->job, &inbox, NULL));
    in_child(release_all);
    CHECK_AT_LEAST(0, fcntl(left_fd, F_GETFD));
    pthread_mutex_unlock(&gate);
    await_jobs(filling, HD_WORKERS_MAX - 1);
    for (int i = 0; i < HD_WORKERS_MAX - 1; i++) finish_job(filling[i]);
    for (int i = RUNNING; i <= FINISHED; i++) {
        await_jobs(&left[i], 1);
        finish_job(left[i]);
    }
    hd_job_release(&left[NEW]->job);
    hd_job_release(&left_rw->job);
    close_inbox();
}

static void fork_in_job(hd_job *job)
{
    in_child(start_anew);
    run_job(job);
}

TEST(a_job_that_forks)
{
    static const hd_job_type forking_type = {.run = fork_in_job, .free = free_job};
    open_inbox();
    test_job *job = new_job(7);
    job->job.type = &forking_type;
    submit(job);
    await_jobs(&job, 1);
    finish_job(job);
    close_inbox();
}

/* Signals are for Ruby's threads. */
static void look_at_signals(hd_job *job)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    ((test_job *)job)->result = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1) ? 0 : 1;
}

static const hd_job_type signal_type = {.run = look_at_signals, .free = free_job};

TEST(workers_take_no_signals)
{
    open_inbox();
    test_job *job = new_job(0);
    job->job.type = &signal_type;
    submit(job);
    await_jobs(&job, 1);
    finish_job(job);
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    CHECK_EQ(0, sigismember(&mine, SIGINT));
    close_inbox();
}

TEST(names_are_resolved)
{
    static const char *const names[] = {"127.0.0.1", "::1", "localhost"};
    open_inbox();
    for (int i = 0; i < 3; i++) {
        waiter waiter = {0};
        hd_address_lookup *resolve = hd_address_lookup_new(names[i], "80", AF_UNSPEC);
        CHECK(resolve);
        CHECK_EQ(0, hd_wait_begin(&waiter.wait, &reactor, HD_WAIT_FOR_WORKER, 8, HD_NO_DEADLINE));
        CHECK_EQ(0, hd_job_submit(&resolve->job, &inbox, &waiter.wait));
        while (!waiter.woken) turn_with_inbox();
        if (resolve->error)
            printf("note: %s: %s\n", names[i], gai_strerror(resolve->error));
        else
            CHECK(resolve->addresses && resolve->count > 0);
        hd_wait_end(&waiter.wait);
        hd_job_release(&resolve->job);
    }
    hd_address_lookup *unused = hd_address_lookup_new("127.0.0.1", NULL, AF_INET);
    hd_job_release(&unused->job);
    close_setting();
}

/* As a caller does that looks at the state and waits for nothing: whoever runs the job must not touch it any more. */
TEST(released_as_soon_as_it_is_finished)
{
    open_inbox();
    for (int i = 0; i < 200; i++) {
        hd_address_lookup *one = hd_address_lookup_new("127.0.0.1", "80", AF_UNSPEC);
        hd_address_lookup *same = hd_address_lookup_new("127.0.0.1", "80", AF_UNSPEC);
        CHECK(one && same);
        CHECK_EQ(0, hd_job_submit(&one->job, &inbox, NULL));
        CHECK_EQ(0, hd_job_submit(&same->job, &inbox, NULL));
        while (!hd_job_finished(&one->job)) sched_yield();
        CHECK_EQ(0, one->error);
        CHECK_EQ(1, (int)one->count);
        hd_job_release(&one->job);
        while (!hd_job_finished(&same->job)) sched_yield();
        CHECK_EQ(0, same->error);
        CHECK_EQ(80, ntohs(same->addresses[0].address.ipv4.sin_port));
        hd_job_release(&same->job);
    }
    close_inbox();
}

TEST(addresses_are_named)
{
    open_inbox();
    hd_address address = {.length = sizeof(struct sockaddr_in)};
    address.address.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(80)};
    address.address.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hd_name_lookup *reverse[2];
    for (int i = 0; i < 2; i++) {
        CHECK((reverse[i] = hd_name_lookup_new(&address, NI_NUMERICSERV)));
        CHECK_EQ(0, hd_job_submit(&reverse[i]->job, &inbox, NULL));
    }
    for (int i = 0; i < 2; i++) {
        while (!hd_job_finished(&reverse[i]->job)) sched_yield();
        CHECK_EQ(0, reverse[i]->error);
        CHECK(reverse[i]->host[0]);
        CHECK_EQ(0, strcmp(reverse[i]->service, "80"));
        hd_job_release(&reverse[i]->job);
    }
    close_inbox();
}

TEST(a_file_is_read_on_a_worker)
{
    open_inbox();
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    waiter waiter = {0};
    hd_rw_job *transfer = hd_rw_job_new(HD_READ, fd, NULL, 100000, 0);
    CHECK(transfer);
    close(fd); /* the job has a duplicate */
    CHECK_EQ(0, hd_wait_begin(&waiter.wait, &reactor, HD_WAIT_FOR_WORKER, 8, HD_NO_DEADLINE));
    CHECK_EQ(0, hd_job_submit(&transfer->job, &inbox, &waiter.wait));
    while (!waiter.woken) turn_with_inbox();
    CHECK_EQ(100000, transfer->result);
    CHECK_EQ(0, memcmp(transfer->bytes, "\177ELF", 4));
    hd_wait_end(&waiter.wait);
    hd_job_release(&transfer->job);
    CHECK(!hd_rw_job_new(HD_READ, -1, NULL, 10, 0));
    close_setting();
}

/* The thread that was tried is gone when the answer is there: its place may be the last one. */
TEST(a_thread_that_is_tried_leaves_nothing)
{
    int before = 0, after = 0;
    for (int round = 0; round < 2; round++) {
        if (round) CHECK(hd_thread_can_start());
        DIR *folder = opendir("/proc/self/task");
        CHECK(folder);
        while (readdir(folder)) ++*(round ? &after : &before);
        closedir(folder);
    }
    CHECK_EQ(before, after);
}

/* Comes last: it waits for the workers to find nothing to do. */
TEST(idle_workers_end)
{
    int threads = 1, queued;
    for (int i = 0; i < 10 * (HD_WORKER_IDLE_SECONDS + 3) && threads > 0; i++) {
        hd_worker_stats(&threads, &queued);
        usleep(100000);
    }
    CHECK_EQ(0, threads);
    open_inbox();
    test_job *job = new_job(1);
    submit(job);
    await_jobs(&job, 1);
    finish_job(job);
    close_inbox();
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(one_job);
    RUN(many_jobs);
    RUN(the_pool_grows_to_its_limit);
    RUN(released_while_queued);
    RUN(released_while_running);
    RUN(released_when_finished_but_not_drained);
    RUN(settled_by_another_cause);
    RUN(finished_after_the_inbox_was_closed);
    RUN(released_after_the_inbox_was_freed);
    RUN(random_releases);
    RUN(several_threads_share_the_pool);
    RUN(a_fork_while_jobs_run);
    RUN(forks_at_any_moment);
    RUN(released_in_the_child_of_a_fork);
    RUN(a_job_that_forks);
    RUN(workers_take_no_signals);
    RUN(names_are_resolved);
    RUN(released_as_soon_as_it_is_finished);
    RUN(addresses_are_named);
    RUN(a_thread_that_is_tried_leaves_nothing);
    RUN(a_file_is_read_on_a_worker);
    RUN(idle_workers_end);
    return test_finish();
}
