/* The child of a fork: closing there leaves the parent's set alone, a new backend works there, and the parent's
 * waiters get their events whatever the child does. What os/fork.h promises: private descriptors are closed, guarded
 * state is whole. For jobs see worker_test.c.
 * Runs under: address, thread, portable. */
#include "harness.h"

enum { WAITERS = 20 };

static int fds[WAITERS][2];
static waiter waiters[WAITERS];

/* As fibers/ does it at the first use after the fork. */
static void child_takes_over(void)
{
    hd_reactor_forget(&reactor, hd_fork_generation);
    hd_map_forget(&ios);
    CHECK_EQ(0, hd_reactor_open(&reactor, now_on->ops, now_on->pinned));
}

static void child_uses_its_own(bool same_descriptors)
{
    int own[2];
    waiter waiter;
    if (same_descriptors)
        memcpy(own, fds[0], sizeof(own));
    else
        CHECK_EQ(0, real_pair(own));
    park(&waiter, own[0], POLLIN);
    turn(0);
    if (!same_descriptors) {
        real_write(own[1], 1);
        CHECK_EQ(POLLIN, await_event(&waiter));
    } else {
        check_quiet();
        unpark(&waiter);
        now_on->ops->release_files(reactor.backend);
    }
    check_idle();
}

static void close_only(void)
{
    hd_reactor_close(&reactor);
}

static void close_everything(void)
{
    hd_reactor_close(&reactor);
    for (int i = 0; i < WAITERS; i++) close(fds[i][0]), close(fds[i][1]);
}

static void use_new_descriptors(void)
{
    child_takes_over();
    child_uses_its_own(false);
    hd_reactor_close(&reactor);
}

static void use_the_same_descriptors(void)
{
    child_takes_over();
    child_uses_its_own(true);
    hd_reactor_close(&reactor);
}

static void fork_again(void)
{
    child_takes_over();
    in_child(use_new_descriptors);
    child_uses_its_own(false);
    hd_reactor_close(&reactor);
}

static void just_end(void)
{
}

static void run_with_child(void (*body)(void))
{
    for (int submitted = 0; submitted < 2; submitted++) {
        for (int i = 0; i < WAITERS; i++) {
            CHECK_EQ(0, real_pair(fds[i]));
            park(&waiters[i], fds[i][0], POLLIN);
        }
        if (submitted) turn(0);
        in_child(body);
        check_quiet();
        for (int i = 0; i < WAITERS; i++) real_write(fds[i][1], 1);
        for (int i = 0; i < WAITERS; i++) CHECK_EQ(POLLIN, await_event(&waiters[i]));
        now_on->ops->wake(reactor.backend);
        hd_reactor_poll_nogvl(&reactor, HD_NO_DEADLINE);
        hd_reactor_reap(&reactor);
        for (int i = 0; i < WAITERS; i++) real_close(fds[i][0]), real_close(fds[i][1]);
    }
}

CONTRACT(the_parent_notices_nothing)
{
    void (*const bodies[])(void) = {just_end,   close_only,          close_everything, use_new_descriptors,
                                    fork_again, use_the_same_descriptors};
    for (size_t i = 0; world->real && i < sizeof(bodies) / sizeof(*bodies); i++) run_with_child(bodies[i]);
}

/* -- os/fork.h ------------------------------------------------------------------------------------------------ */

enum { FORKS = 50 };

static hd_private_fd private_fds[2];
static unsigned generation_before;

static void look_at_private_fds(void)
{
    CHECK_EQ(generation_before + 1, hd_fork_generation);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(-1, private_fds[i].number);
        hd_private_fd_close(&private_fds[i]); /* nothing to be done */
    }
    hd_private_fd_own(&private_fds[0], dup(0));
    hd_private_fd_close(&private_fds[0]);
}

TEST(private_descriptors)
{
    int pair[2], kept[2];
    CHECK_EQ(0, real_pair(pair));
    generation_before = hd_fork_generation;
    for (int i = 0; i < 2; i++) hd_private_fd_own(&private_fds[i], pair[i]);
    CHECK_EQ(0, real_pair(kept));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        look_at_private_fds();
        CHECK_EQ(1, read(kept[0], &byte, 1)); /* until the parent has looked */
        _exit(0);
    }
    hd_private_fd_close(&private_fds[0]);
    CHECK_EQ(0, read(pair[1], &child, 1)); /* the child does not hold the other end open */
    real_write(kept[1], 1);
    CHECK(waitpid(-1, NULL, 0) > 0);
    CHECK_EQ(generation_before, hd_fork_generation);
    hd_private_fd_close(&private_fds[1]);
    CHECK_EQ(-1, fcntl(pair[1], F_GETFD));
    close(kept[0]), close(kept[1]);
}

static void reset_numbers(void);
static hd_fork_guard numbers_guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .reset = reset_numbers};
static int one_number, other_number;
static bool over; /* atomic */

static void reset_numbers(void)
{
    CHECK_EQ(one_number, other_number);
    one_number = other_number = -1;
}

static void *change_state(void *unused)
{
    hd_private_fd fd = {0};
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&numbers_guard.lock);
        one_number++;
        sched_yield();
        other_number++;
        pthread_mutex_unlock(&numbers_guard.lock);
        hd_private_fd_own(&fd, dup(0));
        hd_private_fd_close(&fd);
    }
    return unused;
}

static void look_at_state(void)
{
    pthread_mutex_lock(&numbers_guard.lock);
    CHECK_EQ(-1, one_number);
    CHECK_EQ(-1, other_number);
    pthread_mutex_unlock(&numbers_guard.lock);
}

TEST(guarded_state)
{
    pthread_t threads[2];
    hd_fork_register(&numbers_guard);
    for (int i = 0; i < 2; i++) CHECK_EQ(0, pthread_create(&threads[i], NULL, change_state, NULL));
    for (int i = 0; i < FORKS; i++) in_child(look_at_state);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) CHECK_EQ(0, pthread_join(threads[i], NULL));
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(the_parent_notices_nothing);
    RUN(private_descriptors);
    RUN(guarded_state);
    return test_finish();
}
