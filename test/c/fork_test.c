/* The child of a fork: closing there leaves the parent's set alone, a new backend works there, and the parent's
 * waiters get their events whatever the child does. */
#include "harness.h"

enum { WAITERS = 20 };

static int fds[WAITERS][2];
static waiter waiters[WAITERS];

/* As the glue does it at the first use after the fork. */
static void child_takes_over(void)
{
    hd_reactor_close(&reactor, true);
    hd_reactor_forget(&reactor);
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
        now_on->ops->flush(reactor.backend);
    }
    check_idle();
}

static void in_child(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        body();
        fflush(NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(child, waitpid(child, &status, 0));
    CHECK_EQ(0, status);
}

static void close_only(void)
{
    hd_reactor_close(&reactor, true);
}

static void close_everything(void)
{
    hd_reactor_close(&reactor, true);
    for (int i = 0; i < WAITERS; i++) close(fds[i][0]), close(fds[i][1]);
}

static void use_new_descriptors(void)
{
    child_takes_over();
    child_uses_its_own(false);
    hd_reactor_close(&reactor, false);
}

static void use_the_same_descriptors(void)
{
    child_takes_over();
    child_uses_its_own(true);
    hd_reactor_close(&reactor, false);
}

static void fork_again(void)
{
    child_takes_over();
    in_child(use_new_descriptors);
    child_uses_its_own(false);
    hd_reactor_close(&reactor, false);
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

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(the_parent_notices_nothing);
    return test_finish();
}
