/* os/kept_backend.h: a thread gets its backend back; another kind, the end of a thread, a fork and idleness close it.
 * Runs under: address, thread. */
#include <dirent.h>
#include <pthread.h>

#include "harness.h"
#include "os/kept_backend.h"

enum { THREADS = HD_KEPT_MAX + 6, ROUNDS = 200 };

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static hd_backend *open_one(const hd_backend_ops *ops)
{
    hd_backend *backend = NULL;
    CHECK_EQ(0, ops->open(&backend, true));
    return backend;
}

static bool offered(const hd_backend_ops *ops)
{
    char reason[200];
    return hd_backend_offered(ops, reason, sizeof(reason));
}

/* The waits of one reactor after the other, on one backend. */
CONTRACT(the_thread_gets_it_back)
{
    if (!world->real || !now_on->pinned) return;
    int fds[2];
    waiter waiter;
    CHECK_EQ(0, world->pair(fds));
    for (int round = 0; round < ROUNDS; round++) {
        hd_backend *before = reactor.backend;
        park(&waiter, fds[0], POLLIN);
        if (round % 2) {
            world->write(fds[1], 1);
            CHECK_EQ(POLLIN, await_event(&waiter));
            CHECK_EQ(1, world->read(fds[0]));
        } else {
            unpark(&waiter);
        }
        hd_kept_backend_put(now_on->ops, hd_reactor_detach(&reactor));
        hd_backend *kept = hd_kept_backend_take(now_on->ops);
        CHECK(kept == before);
        CHECK(!hd_kept_backend_take(now_on->ops));
        hd_reactor_attach(&reactor, now_on->ops, kept);
    }
    world->close(fds[0]), world->close(fds[1]);
}

TEST(one_of_another_kind_is_closed)
{
    if (!offered(&hd_backend_uring)) SKIP("no io_uring");
    int before = descriptors();
    hd_kept_backend_put(&hd_backend_uring, open_one(&hd_backend_uring));
    CHECK(!hd_kept_backend_take(&hd_backend_epoll));
    CHECK_EQ(before, descriptors());
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    hd_kept_backend_put(&hd_backend_uring, open_one(&hd_backend_uring));
    hd_kept_backend_close();
    hd_kept_backend_close();
    CHECK_EQ(before, descriptors());
}

static void child_has_none(void)
{
    int before = descriptors();
    CHECK(!hd_kept_backend_take(&hd_backend_epoll));
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    CHECK_EQ(before + 2, descriptors());
    hd_backend *kept = hd_kept_backend_take(&hd_backend_epoll);
    CHECK(kept);
    hd_backend_epoll.close(kept);
    CHECK_EQ(before, descriptors());
}

static void child_of_a_child(void)
{
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    in_child(child_has_none);
}

TEST(the_child_of_a_fork_has_none)
{
    int before = descriptors();
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    in_child(child_has_none);
    in_child(child_of_a_child);
    CHECK_EQ(before + 2, descriptors());
    hd_backend *kept = hd_kept_backend_take(&hd_backend_epoll);
    CHECK(kept);
    hd_backend_epoll.close(kept);
}

static pthread_barrier_t all_have_put, all_are_counted;

static void *keep_one(void *unused)
{
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    pthread_barrier_wait(&all_have_put);
    pthread_barrier_wait(&all_are_counted);
    return unused; /* (the thread ends without a word) */
}

TEST(so_many_are_kept_until_their_threads_end)
{
    pthread_t threads[THREADS];
    int before = descriptors();
    pthread_barrier_init(&all_have_put, NULL, THREADS + 1);
    pthread_barrier_init(&all_are_counted, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(0, pthread_create(&threads[i], NULL, keep_one, NULL));
    pthread_barrier_wait(&all_have_put);
    CHECK_EQ(before + 2 * HD_KEPT_MAX, descriptors());
    pthread_barrier_wait(&all_are_counted);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(before, descriptors());
}

static void *put_and_take(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        hd_backend *backend = hd_kept_backend_take(&hd_backend_epoll);
        hd_kept_backend_put(&hd_backend_epoll, backend ? backend : open_one(&hd_backend_epoll));
    }
    return unused;
}

TEST(many_threads_at_once)
{
    pthread_t threads[8];
    int before = descriptors();
    for (int i = 0; i < 8; i++) CHECK_EQ(0, pthread_create(&threads[i], NULL, put_and_take, NULL));
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(before, descriptors());
}

/* Comes last: it waits until the backends that were kept before have been looked after, too. */
TEST(an_idle_one_is_closed)
{
    int before = descriptors();
    hd_kept_backend_put(&hd_backend_epoll, open_one(&hd_backend_epoll));
    CHECK_EQ(before + 2, descriptors());
    int64_t start_ns = hd_clock_now(), end_ns = start_ns + 4 * HD_KEPT_SECONDS * HD_NS_PER_SECOND;
    while (descriptors() > before && hd_clock_now() < end_ns) usleep(20000);
    CHECK_EQ(before, descriptors());
    CHECK_AT_LEAST(HD_KEPT_SECONDS * HD_NS_PER_SECOND, hd_clock_now() - start_ns);
    CHECK(!hd_kept_backend_take(&hd_backend_epoll));
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(the_thread_gets_it_back);
    RUN(one_of_another_kind_is_closed);
    RUN(the_child_of_a_fork_has_none);
    RUN(so_many_are_kept_until_their_threads_end);
    RUN(many_threads_at_once);
    RUN(an_idle_one_is_closed);
    return test_finish();
}
