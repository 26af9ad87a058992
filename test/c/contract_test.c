/* The contract of the seam (core/backend.h), one body for every backend: io_uring, epoll and the simulation, as
 * seen through the reactor.
 * Runs under: address, portable. */
#include "harness.h"

CONTRACT(an_event_wakes_its_waiter_once)
{
    int fds[2];
    waiter waiter;
    CHECK_EQ(0, world->pair(fds));
    park(&waiter, fds[0], POLLIN);
    check_quiet();
    world->write(fds[1], 1);
    CHECK_EQ(POLLIN, await_event(&waiter));
    check_quiet(); /* the byte is still there, and nobody asked again */
    park(&waiter, fds[0], POLLIN);
    CHECK_EQ(POLLIN, await_event(&waiter));
    CHECK_EQ(1, world->read(fds[0]));
    park(&waiter, fds[0], POLLIN);
    check_quiet();
    unpark(&waiter);
    world->close(fds[0]), world->close(fds[1]);
}

CONTRACT(ready_before_it_is_armed)
{
    int fds[2];
    waiter reader, writer;
    CHECK_EQ(0, world->pair(fds));
    world->write(fds[1], 1);
    park(&reader, fds[0], POLLIN);
    park(&writer, fds[1], POLLOUT);
    CHECK_EQ(POLLIN, await_event(&reader));
    CHECK_EQ(POLLOUT, await_event(&writer));
    world->close(fds[0]), world->close(fds[1]);
}

/* The records are freed: the address sanitizer sees a backend that touches one. */
CONTRACT(disarmed_then_the_event_comes)
{
    int fds[2];
    CHECK_EQ(0, world->pair(fds));
    for (int turns = 0; turns < 3; turns++) {
        waiter *early = malloc(sizeof(*early));
        park(early, fds[0], POLLIN);
        for (int i = 0; i < turns; i++) turn(0);
        unpark(early);
        free(early);
        world->write(fds[1], 1);
        check_quiet();
        CHECK_EQ(1, world->read(fds[0]));
    }
    world->close(fds[0]), world->close(fds[1]);
}

/* The kernel has reported the event, nobody has looked at the report yet. */
CONTRACT(disarmed_between_poll_and_reap)
{
    int fds[2];
    CHECK_EQ(0, world->pair(fds));
    for (int next = 0; next < 2; next++) {
        waiter *late = malloc(sizeof(*late)), second;
        park(late, fds[0], POLLIN);
        turn(0);
        world->write(fds[1], 1);
        hd_reactor_poll_nogvl(&reactor, 10 * HD_NS_PER_MS);
        unpark(late);
        free(late);
        if (next) park(&second, fds[0], POLLIN);
        hd_reactor_reap(&reactor);
        if (next)
            CHECK_EQ(POLLIN, (run_ready(), await_event(&second)));
        else
            check_quiet();
        CHECK_EQ(1, world->read(fds[0]));
    }
    world->close(fds[0]), world->close(fds[1]);
}

CONTRACT(a_hang_up_wakes_every_kind_of_waiter)
{
    int fds[2];
    waiter in, out, urgent;
    CHECK_EQ(0, world->pair(fds));
    park(&in, fds[0], POLLIN);
    park(&urgent, fds[0], POLLPRI);
    check_quiet();
    world->close(fds[1]);
    CHECK_EQ(POLLIN, await_event(&in));
    CHECK(await_event(&urgent) & POLLIN); /* a hang-up is readable */
    park(&out, fds[0], POLLOUT);
    CHECK_EQ(POLLIN | POLLOUT, await_event(&out));
    CHECK_EQ(0, world->read(fds[0]));
    world->close(fds[0]);
}

/* A pipe whose writer went away shows POLLHUP and nothing else; one whose reader went away shows POLLERR. */
CONTRACT(pipes_that_only_hang_up)
{
    if (!world->real) return;
    int fds[2];
    waiter waiter;
    CHECK_EQ(0, pipe2(fds, O_CLOEXEC));
    park(&waiter, fds[0], POLLIN);
    turn(0);
    close(fds[1]);
    CHECK_EQ(POLLIN, await_event(&waiter));
    close(fds[0]);
    CHECK_EQ(0, pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    while (write(fds[1], &fds, 1) == 1) continue;
    park(&waiter, fds[1], POLLOUT);
    check_quiet();
    close(fds[0]);
    CHECK_EQ(POLLIN | POLLOUT, await_event(&waiter));
    close(fds[1]);
}

/* It was not asked for; what was asked for may still come. */
CONTRACT(a_hang_up_is_nothing_to_who_selects)
{
    if (!world->real) return;
    int fds[2];
    char bytes[4096];
    waiter out, urgent, in;
    CHECK_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    while (send(fds[0], bytes, sizeof(bytes), 0) > 0) continue;
    park_selecting(&out, fds[0], POLLOUT);
    park_selecting(&urgent, fds[0], POLLPRI);
    CHECK_EQ(0, shutdown(fds[0], SHUT_RDWR));
    check_quiet();
    park(&in, fds[0], POLLIN);
    CHECK_EQ(POLLIN, await_event(&in));
    check_quiet();
    while (recv(fds[1], bytes, sizeof(bytes), 0) > 0) continue;
    CHECK_EQ(POLLOUT, await_event(&out));
    check_quiet();
    unpark(&urgent);
    park(&in, fds[0], POLLIN | POLLOUT);
    CHECK_EQ(POLLIN | POLLOUT, await_event(&in));
    world->close(fds[0]), world->close(fds[1]);
}

CONTRACT(reader_and_writer_on_one_descriptor)
{
    int fds[2];
    waiter reader, writer;
    CHECK_EQ(0, world->pair(fds));
    for (int order = 0; order < 2; order++) {
        if (order) park(&writer, fds[0], POLLOUT);
        park(&reader, fds[0], POLLIN);
        if (!order) park(&writer, fds[0], POLLOUT);
        CHECK_EQ(POLLOUT, await_event(&writer));
        check_quiet();
        CHECK_EQ(0, reader.woken);
        world->write(fds[1], 1);
        CHECK_EQ(POLLIN, await_event(&reader));
        CHECK_EQ(1, world->read(fds[0]));
    }
    world->close(fds[0]), world->close(fds[1]);
}

/* Readiness is for all that asked: each tries, and waiters that come too late ask again. */
CONTRACT(two_readers_of_one_descriptor)
{
    int fds[2];
    waiter first, second;
    CHECK_EQ(0, world->pair(fds));
    park(&first, fds[0], POLLIN);
    park(&second, fds[0], POLLIN);
    turn(0);
    world->write(fds[1], 1);
    CHECK_EQ(POLLIN, await_event(&first));
    CHECK_EQ(POLLIN, await_event(&second));
    world->close(fds[0]), world->close(fds[1]);
}

CONTRACT(one_of_two_is_disarmed)
{
    int fds[2];
    for (int submitted = 0; submitted < 2; submitted++) {
        for (int gone = 0; gone < 2; gone++) {
            waiter both[2];
            CHECK_EQ(0, world->pair(fds));
            park(&both[0], fds[0], POLLIN);
            park(&both[1], fds[0], POLLIN | POLLPRI);
            if (submitted) turn(0);
            unpark(&both[gone]);
            memset(&both[gone], 0xEE, sizeof(*both));
            check_quiet();
            world->write(fds[1], 1);
            CHECK_EQ(POLLIN, await_event(&both[!gone]) & POLLIN);
            world->close(fds[0]), world->close(fds[1]);
        }
    }
}

/* IO.select: one wait, many interests. */
CONTRACT(one_wait_with_many_interests)
{
    enum { MANY = 20 };
    int fds[MANY][2];
    waiter waiter = {0};
    hd_interest interests[MANY] = {{.fd = -1}};
    for (int i = 0; i < MANY; i++) CHECK_EQ(0, world->pair(fds[i]));
    CHECK_EQ(0, hd_wait_begin(&waiter.wait, &reactor, HD_WAIT_FOR_SELECT, (hd_word)&waiter, HD_NO_DEADLINE));
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(0, hd_interest_arm(&interests[i], &waiter.wait, 8, fds[i][0], POLLIN));
    check_quiet();
    world->write(fds[3][1], 1);
    world->write(fds[7][1], 1);
    while (!waiter.woken) turn(HD_NS_PER_SECOND);
    int ready = 0;
    for (int i = 0; i < MANY; i++) {
        if (i != 3 && i != 7) CHECK_EQ(0, interests[i].revents);
        ready += interests[i].revents == POLLIN;
        hd_interest_disarm(&interests[i]);
    }
    CHECK_AT_LEAST(1, ready);
    hd_wait_end(&waiter.wait);
    check_quiet();
    for (int i = 0; i < MANY; i++) world->close(fds[i][0]), world->close(fds[i][1]);
}

/* The number is closed and used again, while a duplicate keeps the old file (and what the kernel knows of it). */
CONTRACT(a_number_is_used_again)
{
    for (int submitted = 0; submitted < 2; submitted++) {
        int old[2], fresh[2];
        waiter *before = malloc(sizeof(*before)), after;
        CHECK_EQ(0, world->pair(old));
        park(before, old[0], POLLIN);
        if (submitted) turn(0);
        int duplicate = world->dup(old[0]);
        unpark(before);
        free(before);
        world->close(old[0]);
        CHECK_EQ(0, world->pair(fresh));
        CHECK_EQ(old[0], fresh[0]);
        park(&after, fresh[0], POLLIN);
        world->write(old[1], 1);
        check_quiet();
        world->write(fresh[1], 1);
        CHECK_EQ(POLLIN, await_event(&after));
        world->close(fresh[0]), world->close(fresh[1]), world->close(duplicate), world->close(old[1]);
    }
}

/* More than the submission queue holds, on descriptors of their own and all on one. */
CONTRACT(thousands_of_waiters)
{
    enum { PAIRS = 1200, ON_ONE = 1500 };
    static int fds[PAIRS][2];
    static waiter waiters[PAIRS], on_one[ON_ONE];
    int pairs = 0;
    while (pairs < PAIRS && world->pair(fds[pairs]) == 0) pairs++;
    if (pairs < PAIRS) printf("note: only %d pairs of descriptors\n", pairs);
    for (int i = 0; i < pairs; i++) park(&waiters[i], fds[i][0], POLLIN);
    for (int i = 0; i < ON_ONE; i++) park(&on_one[i], fds[0][0], POLLIN);
    check_quiet();
    for (int i = 0; i < pairs; i++) world->write(fds[i][1], 1);
    for (int i = 0; i < pairs; i++) CHECK_EQ(POLLIN, await_event(&waiters[i]));
    for (int i = 0; i < ON_ONE; i++) CHECK_EQ(POLLIN, await_event(&on_one[i]));
    for (int i = 0; i < pairs; i++) CHECK_EQ(1, world->read(fds[i][0]));
    for (int round = 0; round < 2; round++) { /* armed and disarmed in one turn, never looked at */
        for (int i = 0; i < pairs; i++) park(&waiters[i], fds[i][0], POLLIN);
        for (int i = 0; i < pairs; i++) unpark(&waiters[i]);
        memset(waiters, 0xEE, sizeof(waiters));
    }
    check_quiet();
    for (int i = 0; i < pairs; i++) world->close(fds[i][0]), world->close(fds[i][1]);
    turn(0);
}

/* A ring with deferred task work does 20 pieces of it a call (Linux 6.13) unless asked for more. */
CONTRACT(a_burst_of_events_takes_few_turns)
{
    enum { PAIRS = 400 };
    static int fds[PAIRS][2];
    static waiter waiters[PAIRS];
    if (!world->real) return;
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(0, world->pair(fds[i]));
        park(&waiters[i], fds[i][0], POLLIN);
    }
    check_quiet();
    for (int i = 0; i < PAIRS; i++) world->write(fds[i][1], 1);
    int turns = 0;
    for (int woken = 0; woken < PAIRS; woken += turn(HD_NS_PER_SECOND)) turns++;
    CHECK_AT_LEAST(turns, 6);
    for (int i = 0; i < PAIRS; i++) unpark(&waiters[i]), world->close(fds[i][0]), world->close(fds[i][1]);
}

CONTRACT(a_timeout_is_never_early)
{
    const int64_t timeouts[] = {0, 1, 999, 100000, HD_NS_PER_MS - 1, HD_NS_PER_MS, 3300001, 12 * HD_NS_PER_MS};
    for (size_t i = 0; i < sizeof(timeouts) / sizeof(*timeouts); i++) {
        waiter sleeper = {0};
        int64_t start_ns = hd_clock_now();
        CHECK_EQ(0, hd_wait_begin(&sleeper.wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&sleeper,
                                  start_ns + timeouts[i]));
        int turns = 0;
        while (!sleeper.woken) turns++, turn(HD_NO_DEADLINE);
        CHECK_EQ(HD_WOKEN_BY_TIMEOUT, sleeper.wait.wake);
        CHECK_AT_LEAST(timeouts[i], hd_clock_now() - start_ns);
        if (world->real) CHECK_AT_LEAST(turns, 3); /* it does not spin until then either */
        if (world->real) CHECK_AT_LEAST(hd_clock_now() - start_ns, timeouts[i] + HD_NS_PER_SECOND);
        hd_wait_end(&sleeper.wait);
    }
}

CONTRACT(an_event_comes_before_its_deadline_or_after)
{
    int fds[2];
    waiter waiter;
    CHECK_EQ(0, world->pair(fds));
    CHECK_EQ(0, park_for(&waiter, fds[0], POLLIN, 2 * HD_NS_PER_MS));
    await_waiter(&waiter);
    CHECK_EQ(HD_WOKEN_BY_TIMEOUT, waiter.wait.wake);
    CHECK_EQ(0, waiter.interest.revents);
    world->write(fds[1], 1);
    if (world->real) poll_now(); /* too late: not another wake */
    CHECK_EQ(HD_WOKEN_BY_TIMEOUT, waiter.wait.wake);
    CHECK_EQ(0, run_ready());
    unpark(&waiter);
    CHECK_EQ(0, park_for(&waiter, fds[0], POLLIN, 20 * HD_NS_PER_SECOND));
    CHECK_EQ(POLLIN, await_event(&waiter));
    world->close(fds[0]), world->close(fds[1]);
}

CONTRACT(a_wake_ends_the_next_poll)
{
    for (int wakes = 1; wakes <= 3; wakes++) {
        int64_t start_ns = hd_clock_now();
        for (int i = 0; i < wakes; i++) now_on->ops->wake(reactor.backend);
        hd_reactor_poll_nogvl(&reactor, 20 * HD_NS_PER_SECOND);
        hd_reactor_reap(&reactor);
        CHECK_AT_LEAST(hd_clock_now() - start_ns, 10 * HD_NS_PER_SECOND);
    }
    /* It is used up then. A poll may return for nothing (the work of a ring that was just closed interrupts even
     * epoll, with EINTR), but not again and again. */
    int64_t start_ns = hd_clock_now();
    int polls = 0;
    for (; hd_clock_now() - start_ns < 5 * HD_NS_PER_MS; polls++) {
        hd_reactor_poll_nogvl(&reactor, 5 * HD_NS_PER_MS);
        hd_reactor_reap(&reactor);
    }
    CHECK_AT_LEAST(polls, world->real ? 20 : 40);
    now_on->ops->wake(reactor.backend); /* a poll that only looks takes nothing from the next sleep's wake */
    poll_now();
    now_on->ops->wake(reactor.backend);
    hd_reactor_poll_nogvl(&reactor, 20 * HD_NS_PER_SECOND);
    hd_reactor_reap(&reactor);
    CHECK_AT_LEAST(hd_clock_now() - start_ns, 10 * HD_NS_PER_SECOND);
}

/* Events and wakes between polls that only look: the wake must not be lost among them. */
CONTRACT(a_wake_among_events)
{
    int fds[2];
    CHECK_EQ(0, world->pair(fds));
    world->write(fds[1], 1);
    for (int round = 0; round < 50; round++) {
        waiter waiter;
        park(&waiter, fds[0], POLLIN);
        if (round % 2) turn(0);
        now_on->ops->wake(reactor.backend);
        if (round % 3) await_waiter(&waiter);
        unpark(&waiter);
        if (round % 5 == 0) poll_now();
    }
    for (int i = 0; i < 3; i++) turn(0);
    now_on->ops->wake(reactor.backend);
    int64_t start_ns = hd_clock_now();
    hd_reactor_poll_nogvl(&reactor, 20 * HD_NS_PER_SECOND);
    hd_reactor_reap(&reactor);
    CHECK_AT_LEAST(hd_clock_now() - start_ns, 10 * HD_NS_PER_SECOND);
    world->close(fds[0]), world->close(fds[1]);
}

/* After disarm and release_files a close is a close: the peer sees the end of the stream at once. */
CONTRACT(files_are_released)
{
    for (int submitted = 0; submitted < 2; submitted++) {
        for (int waiters = 1; waiters <= 300; waiters += 299) {
            static waiter many[300];
            int fds[2];
            CHECK_EQ(0, world->pair(fds));
            for (int i = 0; i < waiters; i++) park(&many[i], fds[0], POLLIN);
            if (submitted) turn(0);
            for (int i = 0; i < waiters; i++) unpark(&many[i]);
            now_on->ops->release_files(reactor.backend);
            world->close(fds[0]);
            CHECK_EQ(0, world->read(fds[1]));
            world->close(fds[1]);
            turn(0);
        }
    }
}

CONTRACT(a_regular_file)
{
    waiter waiter;
    int fd = world->file();
    int error = park_for(&waiter, fd, POLLIN, HD_NO_DEADLINE);
    if (now_on->ops == hd_backend_named("epoll")) CHECK_EQ(-EPERM, error);
    if (error)
        CHECK_EQ(-EPERM, error);
    else
        CHECK_EQ(POLLIN, await_event(&waiter));
    check_idle();
    world->close(fd);
}

CONTRACT(numbers_that_are_not_open)
{
    waiter waiter;
    int fds[2];
    CHECK_EQ(-EBADF, park_for(&waiter, -1, POLLIN, HD_NO_DEADLINE));
    check_idle();
    CHECK_EQ(0, world->pair(fds));
    world->close(fds[0]), world->close(fds[1]);
    for (int round = 0; round < 2; round++) {
        int error = park_for(&waiter, fds[round], POLLIN, HD_NO_DEADLINE);
        if (error)
            CHECK_EQ(-EBADF, error);
        else
            CHECK_EQ(POLLIN, await_event(&waiter)); /* it tries, and gets EBADF */
        check_idle();
    }
}

CONTRACT(closed_with_waiters)
{
    int fds[2];
    static waiter waiters[10];
    CHECK_EQ(0, world->pair(fds));
    for (int i = 0; i < 10; i++) park(&waiters[i], fds[i % 2], POLLIN);
    turn(0);
    hd_reactor_close(&reactor);
    for (int i = 0; i < 10; i++) unpark(&waiters[i]);
    world->close(fds[0]), world->close(fds[1]);
    reactor.armed = 0; /* nothing is armed in a backend that is gone */
}

/* fibers/ keeps one reactor through a close and an open (after a fork, and in the child). */
CONTRACT(opened_again_after_close)
{
    int fds[2];
    waiter waiter;
    CHECK_EQ(0, world->pair(fds));
    for (int round = 0; round < 20; round++) {
        park(&waiter, fds[0], POLLIN);
        world->write(fds[1], 1);
        CHECK_EQ(POLLIN, await_event(&waiter));
        CHECK_EQ(1, world->read(fds[0]));
        hd_reactor_close(&reactor);
        CHECK_EQ(0, hd_reactor_open(&reactor, now_on->ops, now_on->pinned));
    }
    world->close(fds[0]), world->close(fds[1]);
}

/* What the last loop has left behind reaches nobody, and the peer of a descriptor that it had sees its end. */
CONTRACT(another_loop_goes_on_with_it)
{
    int fds[2];
    for (int round = 0; round < 20; round++) {
        waiter *left = malloc(sizeof(*left)), next;
        CHECK_EQ(0, world->pair(fds));
        park(left, fds[0], POLLIN);
        if (round % 2) turn(0);
        if (round % 3 == 0) world->write(fds[1], 1);
        unpark(left);
        free(left);
        if (round % 4 == 0) now_on->ops->wake(reactor.backend);
        CHECK(now_on->ops->rest(reactor.backend));
        hd_backend *backend = hd_reactor_detach(&reactor);
        hd_reactor_close(&reactor); /* it has none */
        hd_reactor_attach(&reactor, now_on->ops, backend);
        if (round % 3 == 0) CHECK_EQ(1, world->read(fds[0]));
        park(&next, fds[0], POLLIN);
        check_quiet();
        world->write(fds[1], 1);
        CHECK_EQ(POLLIN, await_event(&next));
        CHECK(now_on->ops->rest(reactor.backend));
        world->close(fds[0]);
        CHECK_EQ(0, world->read(fds[1]));
        world->close(fds[1]);
    }
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(an_event_wakes_its_waiter_once);
    RUN(ready_before_it_is_armed);
    RUN(disarmed_then_the_event_comes);
    RUN(disarmed_between_poll_and_reap);
    RUN(a_hang_up_wakes_every_kind_of_waiter);
    RUN(pipes_that_only_hang_up);
    RUN(a_hang_up_is_nothing_to_who_selects);
    RUN(reader_and_writer_on_one_descriptor);
    RUN(two_readers_of_one_descriptor);
    RUN(one_of_two_is_disarmed);
    RUN(one_wait_with_many_interests);
    RUN(a_number_is_used_again);
    RUN(thousands_of_waiters);
    RUN(a_burst_of_events_takes_few_turns);
    RUN(a_timeout_is_never_early);
    RUN(an_event_comes_before_its_deadline_or_after);
    RUN(a_wake_ends_the_next_poll);
    RUN(a_wake_among_events);
    RUN(files_are_released);
    RUN(a_regular_file);
    RUN(numbers_that_are_not_open);
    RUN(closed_with_waiters);
    RUN(opened_again_after_close);
    RUN(another_loop_goes_on_with_it);
    return test_finish();
}
