/* What may happen from another thread: wake at any time, a wait settled under the lock that stands for Ruby's
 * GVL, a backend that is opened on one native thread and polled on another, wakeups of a closed-down pool.
 * Runs under: address, thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"
#include "os/wakeup.h"

static pthread_mutex_t gvl = PTHREAD_MUTEX_INITIALIZER;
static int stop; /* atomic */

/* Real backends only: the simulation belongs to one thread. */
#define THREADS_CONTRACT(name)                                                                                     \
    static void name##_body(void);                                                                                 \
    static void name##_if_real(void)                                                                               \
    {                                                                                                              \
        if (world->real) name##_body();                                                                            \
    }                                                                                                              \
    TEST(name)                                                                                                     \
    {                                                                                                              \
        on_every_setting(name##_if_real);                                                                          \
    }                                                                                                              \
    static void name##_body(void)

static atomic_bool woken;

static void *wake_later(void *unused)
{
    (void)unused;
    usleep(5000);
    atomic_store(&woken, true);
    now_on->ops->wake(reactor.backend);
    return NULL;
}

THREADS_CONTRACT(a_wake_ends_a_poll_that_waits)
{
    for (int timeout = 0; timeout < 2; timeout++) {
        pthread_t thread;
        int64_t start_ns = hd_clock_now();
        atomic_store(&woken, false);
        CHECK_EQ(0, pthread_create(&thread, NULL, wake_later, NULL));
        while (!atomic_load(&woken)) /* a poll may return for nothing */
            hd_reactor_poll_nogvl(&reactor, timeout ? 200 * HD_NS_PER_SECOND : HD_NO_DEADLINE);
        CHECK_AT_LEAST(hd_clock_now() - start_ns, 100 * HD_NS_PER_SECOND);
        hd_reactor_reap(&reactor);
        pthread_join(thread, NULL);
    }
}

/* unblock from other threads, exactly as the hook does it: settle with the lock held, wake when the owner sleeps.
 * A lost wakeup makes the owner sleep for ever, and the time limit of the program catches it. */
enum { SETTLERS = 3, ROUNDS = 3000 };

static waiter blocked[SETTLERS];

static void *settle_all_the_time(void *pointer)
{
    waiter *waiter = pointer;
    for (;;) {
        pthread_mutex_lock(&gvl);
        if (stop) break;
        if (hd_node_linked(&waiter->wait.fiber_node.node) && hd_wait_settle(&waiter->wait, HD_WOKEN_BY_UNBLOCK))
            hd_reactor_wake_if_asleep(&reactor);
        pthread_mutex_unlock(&gvl);
        sched_yield();
    }
    pthread_mutex_unlock(&gvl);
    return NULL;
}

static void block(waiter *waiter)
{
    waiter->woken = 0;
    CHECK_EQ(0, hd_wait_begin(&waiter->wait, &reactor, HD_WAIT_FOR_BLOCK, (hd_word)waiter, HD_NO_DEADLINE));
}

static void sleep_until_woken(void)
{
    while (!hd_reactor_has_ready(&reactor)) {
        int64_t timeout_ns = hd_reactor_timeout(&reactor);
        reactor.asleep = true;
        pthread_mutex_unlock(&gvl);
        hd_reactor_poll_nogvl(&reactor, timeout_ns);
        pthread_mutex_lock(&gvl);
        reactor.asleep = false;
        hd_reactor_reap(&reactor);
    }
}

/* The owner sleeps in one way while the kernel watches a descriptor for it, and in another one while it does not. */
static void watch(waiter *watcher, int fd, bool watches)
{
    bool watched = hd_node_linked(&watcher->wait.fiber_node.node);
    if (watches && !watched) park(watcher, fd, POLLIN);
    if (!watches && watched) unpark(watcher);
}

THREADS_CONTRACT(no_wakeup_is_lost)
{
    enum { ROUNDS_OF_A_KIND = 5 };
    pthread_t threads[SETTLERS];
    waiter watcher = {.woken = 0};
    int fds[2];
    CHECK_EQ(0, real_pair(fds));
    stop = 0;
    memset(blocked, 0, sizeof(blocked));
    for (int i = 0; i < SETTLERS; i++)
        CHECK_EQ(0, pthread_create(&threads[i], NULL, settle_all_the_time, &blocked[i]));
    pthread_mutex_lock(&gvl);
    for (int i = 0; i < SETTLERS; i++) block(&blocked[i]);
    for (int round = 0; round < ROUNDS; round++) {
        watch(&watcher, fds[0], round / ROUNDS_OF_A_KIND % 2);
        sleep_until_woken();
        run_ready();
        for (int i = 0; i < SETTLERS; i++) {
            if (!blocked[i].woken) continue;
            CHECK_EQ(HD_WOKEN_BY_UNBLOCK, blocked[i].wait.wake);
            hd_wait_end(&blocked[i].wait);
            block(&blocked[i]);
        }
    }
    stop = 1;
    pthread_mutex_unlock(&gvl);
    for (int i = 0; i < SETTLERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SETTLERS; i++) hd_wait_end(&blocked[i].wait);
    watch(&watcher, fds[0], false);
    close(fds[0]), close(fds[1]);
}

/* Bytes and wakes from other threads at the same time; every byte arrives. */
static int pipe_fds[2];

static void *write_bytes(void *unused)
{
    (void)unused;
    for (int i = 0; i < 500; i++) {
        real_write(pipe_fds[1], 1);
        if (i % 7 == 0) usleep(50);
    }
    return NULL;
}

static void *wake_all_the_time(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        now_on->ops->wake(reactor.backend);
        usleep(20);
    }
    return NULL;
}

THREADS_CONTRACT(events_among_wakes)
{
    pthread_t writer, waker;
    waiter reader;
    CHECK_EQ(0, real_pair(pipe_fds));
    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    CHECK_EQ(0, pthread_create(&writer, NULL, write_bytes, NULL));
    CHECK_EQ(0, pthread_create(&waker, NULL, wake_all_the_time, NULL));
    for (int got = 0; got < 500;) {
        park(&reader, pipe_fds[0], POLLIN);
        CHECK_EQ(POLLIN, await_event(&reader));
        int bytes = real_read(pipe_fds[0]);
        got += bytes > 0 ? bytes : 0;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(writer, NULL);
    pthread_join(waker, NULL);
    close(pipe_fds[0]), close(pipe_fds[1]);
}

/* A Ruby thread that is not pinned may go on on another native thread after every blocking call. */
static void *use_from_here(void *unused)
{
    int fds[2];
    waiter waiter;
    (void)unused;
    CHECK_EQ(0, real_pair(fds));
    for (int i = 0; i < 20; i++) {
        park(&waiter, fds[0], POLLIN);
        turn(0);
        real_write(fds[1], 1);
        CHECK_EQ(POLLIN, await_event(&waiter));
        CHECK_EQ(1, real_read(fds[0]));
        now_on->ops->wake(reactor.backend);
        hd_reactor_poll_nogvl(&reactor, HD_NO_DEADLINE);
        hd_reactor_reap(&reactor);
    }
    park(&waiter, fds[0], POLLIN);
    turn(0);
    unpark(&waiter);
    now_on->ops->release_files(reactor.backend);
    close(fds[0]);
    CHECK_EQ(0, real_read(fds[1]));
    close(fds[1]);
    return NULL;
}

THREADS_CONTRACT(an_unpinned_owner_moves_between_native_threads)
{
    if (now_on->pinned) return;
    int fds[2];
    waiter early;
    CHECK_EQ(0, real_pair(fds));
    park(&early, fds[0], POLLIN); /* armed here, delivered there */
    turn(0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_EQ(0, pthread_create(&thread, NULL, use_from_here, NULL));
        pthread_join(thread, NULL);
        use_from_here(NULL);
    }
    CHECK_EQ(0, early.woken);
    real_write(fds[1], 1);
    CHECK_EQ(POLLIN, await_event(&early));
    close(fds[0]), close(fds[1]);
}

/* The thread on which an interest was armed ends; its requests must not end with it. */
static waiter orphan;

static void *arm_and_end(void *fd)
{
    park(&orphan, *(int *)fd, POLLIN);
    turn(0);
    return NULL;
}

THREADS_CONTRACT(the_arming_thread_ends)
{
    if (now_on->pinned) return;
    int fds[2];
    pthread_t thread;
    CHECK_EQ(0, real_pair(fds));
    CHECK_EQ(0, pthread_create(&thread, NULL, arm_and_end, &fds[0]));
    pthread_join(thread, NULL);
    usleep(20000);
    turn(0);
    CHECK_EQ(0, orphan.woken);
    real_write(fds[1], 1);
    CHECK_EQ(POLLIN, await_event(&orphan));
    CHECK(!orphan.interest.unpollable);
    close(fds[0]), close(fds[1]);
}

static void signal_the_wakeup(int unused)
{
    (void)unused;
    errno = 1234;
    now_on->ops->wake(reactor.backend);
    CHECK_EQ(1234, errno);
}

THREADS_CONTRACT(a_wake_from_a_signal_handler)
{
    struct sigaction action = {.sa_handler = signal_the_wakeup}, before;
    sigaction(SIGUSR1, &action, &before);
    raise(SIGUSR1);
    int64_t start_ns = hd_clock_now();
    hd_reactor_poll_nogvl(&reactor, 20 * HD_NS_PER_SECOND);
    hd_reactor_reap(&reactor);
    CHECK_AT_LEAST(hd_clock_now() - start_ns, 10 * HD_NS_PER_SECOND);
    sigaction(SIGUSR1, &before, NULL);
}

TEST(wakeups_never_block)
{
    hd_wakeup wakeup = {.state = 0};
    CHECK_EQ(0, hd_wakeup_open(&wakeup));
    int fd = wakeup.fd.number;
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    hd_wakeup_clear(&wakeup); /* nothing there */
    uint64_t full = UINT64_MAX - 1;
    CHECK_EQ(sizeof(full), write(fd, &full, sizeof(full)));
    hd_wakeup_signal(&wakeup); /* the counter is full */
    CHECK_EQ(POLLIN, real_ready(fd) & POLLIN);
    hd_wakeup_clear(&wakeup);
    CHECK_EQ(0, real_ready(fd) & POLLIN);
    hd_wakeup_close(&wakeup);
}

TEST(what_was_signalled_before_a_sleep_ends_it)
{
    hd_wakeup wakeup = {.state = 0};
    CHECK_EQ(0, hd_wakeup_open(&wakeup));
    for (int round = 0; round < 3; round++) {
        CHECK(!hd_wakeup_was_signalled(&wakeup));
        hd_wakeup_signal(&wakeup);
        hd_wakeup_signal(&wakeup);
        CHECK(hd_wakeup_was_signalled(&wakeup));
        hd_wakeup_signal(&wakeup);
        hd_wakeup_sleep(&wakeup, HD_NO_DEADLINE);
        int64_t start_ns = hd_clock_now();
        hd_wakeup_sleep(&wakeup, 2 * HD_NS_PER_MS); /* once was enough */
        CHECK_AT_LEAST(2 * HD_NS_PER_MS, hd_clock_now() - start_ns);
    }
    hd_wakeup_close(&wakeup);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(a_wake_ends_a_poll_that_waits);
    RUN(no_wakeup_is_lost);
    RUN(events_among_wakes);
    RUN(an_unpinned_owner_moves_between_native_threads);
    RUN(the_arming_thread_ends);
    RUN(a_wake_from_a_signal_handler);
    RUN(wakeups_never_block);
    RUN(what_was_signalled_before_a_sleep_ends_it);
    return test_finish();
}
