/* core/reactor.h over the simulated backend: the turn, fairness, timeouts, wakes, and what a fork forgets. */
#include "harness.h"

static void open_sim(sim_faults faults)
{
    static setting sim;
    sim = (setting){.name = "sim", .ops = &hd_backend_sim, .world = &sim_world, .faults = faults};
    open_setting(&sim);
}

/* Fibers that yield all the time must not keep the kernel from being looked at: after 64 switches ... */
TEST(a_poll_is_due_after_64_switches)
{
    open_sim((sim_faults){0});
    poll_now();
    for (int round = 0; round < 3; round++) {
        int switches = 0;
        do switches++;
        while (!hd_reactor_poll_due(&reactor));
        CHECK_EQ(HD_SWITCHES_PER_POLL, switches);
        CHECK(hd_reactor_poll_due(&reactor)); /* it stays due until it is done */
        poll_now();
    }
    close_setting();
}

/* ... or after a millisecond, within four switches. */
TEST(a_poll_is_due_after_a_millisecond)
{
    open_sim((sim_faults){0});
    poll_now();
    for (int i = 0; i < 8; i++) CHECK(!hd_reactor_poll_due(&reactor));
    sim_advance(HD_NS_PER_POLL - 1);
    for (int i = 0; i < 8; i++) CHECK(!hd_reactor_poll_due(&reactor));
    sim_advance(1);
    int switches = 0;
    do switches++;
    while (!hd_reactor_poll_due(&reactor));
    CHECK_AT_LEAST(switches, 4);
    poll_now();
    CHECK(!hd_reactor_poll_due(&reactor));
    close_setting();
}

/* ... or when a deadline has come: within four switches of quick fibers, and at once after one that ran for long. */
TEST(a_poll_is_due_when_a_deadline_has_come)
{
    waiter sleeper = {0};
    open_sim((sim_faults){0});
    for (int long_runs = 0; long_runs < 2; long_runs++) {
        poll_now();
        CHECK_EQ(0, hd_wait_begin(&sleeper.wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&sleeper, sim_now() + 30000));
        for (int i = 0; i < 8; i++) {
            CHECK(!hd_reactor_poll_due(&reactor));
            if (long_runs) sim_advance(3000);
        }
        sim_advance(30000);
        int switches = 1;
        while (!hd_reactor_poll_due(&reactor)) switches++;
        CHECK_AT_LEAST(switches, long_runs ? 1 : 4);
        poll_now();
        CHECK(hd_next_ready(&reactor) == &sleeper.wait);
        hd_wait_end(&sleeper.wait);
    }
    close_setting();
}

/* Operations that succeed at once use the turn up. */
TEST(a_turn_is_used_up)
{
    waiter other = {0};
    open_sim((sim_faults){0});
    poll_now();
    hd_reactor_begin_turn(&reactor);
    CHECK(!hd_reactor_count_operation(&reactor)); /* the first one does not look at the clock */
    CHECK(hd_reactor_count_operation(&reactor));
    sim_advance(HD_NS_PER_TURN / 2);
    CHECK(!hd_reactor_turn_is_over(&reactor));
    sim_advance(HD_NS_PER_TURN / 2);
    CHECK(hd_reactor_turn_is_over(&reactor)); /* nobody is ready, but the last look was before this time */
    CHECK(hd_reactor_poll_due(&reactor));
    poll_now();
    CHECK(!hd_reactor_turn_is_over(&reactor));
    hd_wait_begin_ready(&other.wait, &reactor, (hd_word)&other, HD_IN_LINE);
    CHECK(hd_reactor_turn_is_over(&reactor));
    CHECK(hd_next_ready(&reactor) == &other.wait);
    hd_wait_end(&other.wait);
    CHECK(!hd_reactor_count_operation(&reactor)); /* its turn */
    CHECK(!hd_reactor_turn_is_over(&reactor));
    close_setting();
}

/* Of short operations every fourth looks at the clock, of long ones each. */
TEST(how_often_operations_look_at_the_clock)
{
    open_sim((sim_faults){0});
    for (int is_long = 0; is_long < 2; is_long++) {
        poll_now();
        hd_reactor_begin_turn(&reactor);
        int looks = 0;
        for (int i = 0; i < 41; i++) {
            if (hd_reactor_count_operation(&reactor)) looks++, hd_reactor_turn_is_over(&reactor);
            sim_advance(is_long ? HD_NS_PER_SHORT_OPERATION : 1000);
        }
        CHECK_EQ(is_long ? 40 : 10, looks);
    }
    close_setting();
}

/* The more wait behind others, the shorter is a turn. */
TEST(turns_are_short_when_many_wait)
{
    enum { MANY = 1000 };
    static waiter waiters[MANY];
    const struct { int count; int64_t turn_ns; } cases[] = {
        {1, HD_NS_PER_TURN}, {20, HD_NS_PER_TURN}, {100, HD_NS_PER_ROUND / 100}, {MANY, HD_NS_PER_TURN_AT_LEAST}};
    open_sim((sim_faults){0});
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int w = 0; w < cases[i].count; w++)
            hd_wait_begin_ready(&waiters[w].wait, &reactor, (hd_word)&waiters[w], HD_BEHIND);
        poll_now();
        hd_reactor_begin_turn(&reactor);
        sim_advance(cases[i].turn_ns - 1);
        CHECK(!hd_reactor_turn_is_over(&reactor));
        sim_advance(1);
        CHECK(hd_reactor_turn_is_over(&reactor));
        for (int w = 0; w < cases[i].count; w++) hd_wait_end(&waiters[w].wait);
        CHECK_EQ(0, reactor.behind_count);
    }
    close_setting();
}

/* A timer and an event reach their fibers although others are always ready. */
TEST(nobody_starves)
{
    int fds[2];
    waiter sleeper = {0}, reader, yielder = {0};
    open_sim((sim_faults){0});
    sim_pair(fds);
    park(&reader, fds[0], POLLIN);
    CHECK_EQ(0, hd_wait_begin(&sleeper.wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&sleeper,
                              sim_now() + HD_NS_PER_MS));
    sim_write(fds[1], 1);
    int switches = 0;
    while (!reader.woken || !sleeper.woken) {
        hd_wait_begin_ready(&yielder.wait, &reactor, (hd_word)&yielder, HD_IN_LINE);
        for (hd_wait *wait = NULL; wait != &yielder.wait;) {
            if (hd_reactor_poll_due(&reactor)) poll_now();
            wait = hd_next_ready(&reactor);
            CHECK(wait);
            HD_CONTAINER_OF(wait, waiter, wait)->woken++;
        }
        hd_wait_end(&yielder.wait);
        sim_advance(5000);
        CHECK_AT_LEAST(++switches, 1000);
    }
    CHECK_AT_LEAST(switches, HD_NS_PER_MS / 5000 + HD_SWITCHES_PER_POLL + 4);
    unpark(&reader);
    hd_wait_end(&sleeper.wait);
    sim_close(fds[0]), sim_close(fds[1]);
    close_setting();
}

TEST(the_timeout_of_a_turn)
{
    waiter first = {0}, second = {0}, ready = {0};
    open_sim((sim_faults){0});
    CHECK_EQ(HD_NO_DEADLINE, hd_reactor_timeout(&reactor));
    CHECK_EQ(0, hd_wait_begin(&second.wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&second, sim_now() + 500));
    CHECK_EQ(0, hd_wait_begin(&first.wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&first, sim_now() + 300));
    CHECK_EQ(300, hd_reactor_timeout(&reactor));
    sim_advance(100);
    CHECK_EQ(200, hd_reactor_timeout(&reactor));
    hd_wait_begin_ready(&ready.wait, &reactor, (hd_word)&ready, HD_IN_LINE);
    CHECK_EQ(0, hd_reactor_timeout(&reactor));
    CHECK(hd_next_ready(&reactor) == &ready.wait);
    sim_advance(250);
    CHECK_EQ(0, hd_reactor_timeout(&reactor)); /* overdue, never negative */
    poll_now();
    CHECK(hd_next_ready(&reactor) == &first.wait);
    CHECK_EQ(150, hd_reactor_timeout(&reactor));
    hd_wait_end(&first.wait), hd_wait_end(&second.wait), hd_wait_end(&ready.wait);
    close_setting();
}

static char fired[8];

static void fire_upper(hd_timer *timer)
{
    fired[strlen(fired)] = (char)('A' + timer->deadline_ns / 10);
}

static void fire_lower(hd_timer *timer)
{
    fired[strlen(fired)] = (char)('a' + timer->deadline_ns / 10);
}

/* Of equal deadlines the limit goes first: it was set before the wait in its block. */
TEST(limits_and_timers_fire_in_one_order)
{
    enum { COUNT = 3 };
    hd_timer timers[COUNT], limits[COUNT];
    int64_t of_timers[] = {10, 20, 50}, of_limits[] = {0, 20, 30};
    open_sim((sim_faults){0});
    for (int i = 0; i < COUNT; i++) {
        timers[i] = (hd_timer){.fire = fire_lower};
        limits[i] = (hd_timer){.fire = fire_upper};
        CHECK_EQ(0, hd_timers_add(&reactor.timers, &timers[i], of_timers[i]));
        CHECK_EQ(0, hd_timers_add(&reactor.limits, &limits[i], of_limits[i]));
    }
    hd_reactor_fire(&reactor, 9);
    CHECK(!strcmp(fired, "A"));
    hd_reactor_fire(&reactor, 40);
    CHECK(!strcmp(fired, "AbCcD"));
    hd_reactor_fire(&reactor, INT64_MAX);
    CHECK(!strcmp(fired, "AbCcDf"));
    close_setting();
}

TEST(a_limit_ends_the_sleep_of_the_loop)
{
    hd_timer limit = {.fire = fire_upper};
    open_sim((sim_faults){0});
    CHECK_EQ(HD_NO_DEADLINE, hd_reactor_timeout(&reactor));
    CHECK_EQ(0, hd_timers_add(&reactor.limits, &limit, sim_now() + 70));
    CHECK_EQ(70, hd_reactor_timeout(&reactor));
    hd_timers_remove(&reactor.limits, &limit);
    close_setting();
}

/* Both are there when the turn looks: the event wins, for the data would be lost to a timeout. */
TEST(an_event_beats_a_timeout_of_the_same_turn)
{
    int fds[2];
    waiter waiter;
    open_sim((sim_faults){0});
    sim_pair(fds);
    CHECK_EQ(0, park_for(&waiter, fds[0], POLLIN, 10));
    sim_write(fds[1], 1);
    sim_advance(20);
    CHECK_EQ(1, turn(HD_NO_DEADLINE));
    CHECK_EQ(POLLIN, await_event(&waiter));
    CHECK_EQ(0, reactor.timers.count);
    sim_close(fds[0]), sim_close(fds[1]);
    close_setting();
}

/* Reap first, run later. Then one whose deadline has come, one whose event has: neither kind holds up the other. */
TEST(deadlines_and_events_take_turns)
{
    enum { PAIRS = 5 };
    int fds[PAIRS][2];
    waiter readers[PAIRS], sleepers[3] = {0};
    open_sim((sim_faults){0});
    for (int i = 0; i < 3; i++)
        CHECK_EQ(0, hd_wait_begin(&sleepers[i].wait, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&sleepers[i],
                                  sim_now() + 3 - i));
    for (int i = 0; i < PAIRS; i++) {
        sim_pair(fds[i]);
        park(&readers[i], fds[i][0], POLLIN);
        sim_write(fds[i][1], 1);
    }
    sim_advance(10);
    poll_now();
    for (int i = 2; i >= 0; i--) {
        CHECK(hd_next_ready(&reactor) == &sleepers[i].wait);
        CHECK_EQ(HD_WOKEN_BY_EVENT, hd_next_ready(&reactor)->wake);
    }
    for (int i = 3; i < PAIRS; i++) CHECK_EQ(HD_WOKEN_BY_EVENT, hd_next_ready(&reactor)->wake);
    CHECK(!hd_next_ready(&reactor));
    for (int i = 0; i < 3; i++) hd_wait_end(&sleepers[i].wait);
    for (int i = 0; i < PAIRS; i++) unpark(&readers[i]), sim_close(fds[i][0]), sim_close(fds[i][1]);
    close_setting();
}

static void settle_from_outside(void *argument)
{
    CHECK(hd_wait_settle(argument, HD_WOKEN_BY_UNBLOCK));
    hd_reactor_wake_if_asleep(&reactor);
    hd_reactor_wake_if_asleep(&reactor);
}

/* Another thread settles a wait while the owner sleeps; one wake a sleep is enough, and none when it is awake. */
TEST(a_sleeping_owner_is_woken_once)
{
    waiter blocked = {0};
    open_sim((sim_faults){0});
    hd_reactor_wake_if_asleep(&reactor);
    CHECK_EQ(0, reactor.wakes);
    for (unsigned round = 1; round <= 3; round++) {
        CHECK_EQ(0, hd_wait_begin(&blocked.wait, &reactor, HD_WAIT_FOR_BLOCK, (hd_word)&blocked, HD_NO_DEADLINE));
        blocked.woken = 0;
        sim_at(sim_now() + 700, settle_from_outside, &blocked.wait);
        reactor.asleep = true;
        int64_t start_ns = sim_now();
        hd_reactor_poll_nogvl(&reactor, hd_reactor_timeout(&reactor));
        reactor.asleep = false;
        CHECK_EQ(700, sim_now() - start_ns);
        hd_reactor_reap(&reactor);
        CHECK_EQ(1, run_ready());
        CHECK_EQ(round, reactor.wakes);
        hd_wait_end(&blocked.wait);
    }
    hd_reactor_close(&reactor);
    reactor.asleep = true;
    hd_reactor_wake_if_asleep(&reactor); /* nobody there */
    reactor.asleep = false;
    close_setting();
}

/* An interest that could not be armed leaves nothing, and its wait can try again. */
TEST(arming_fails)
{
    int fds[2];
    waiter waiter;
    open_sim((sim_faults){.arm_error_percent = 100});
    sim_pair(fds);
    int error = park_for(&waiter, fds[0], POLLIN, 100);
    CHECK(error == -ENOMEM || error == -EAGAIN);
    check_idle();
    CHECK_EQ(0, waiter.interest.token);
    hd_interest_disarm(&waiter.interest); /* no harm */
    sim_close(fds[0]), sim_close(fds[1]);
    close_setting();
}

/* The stacks with the waits may be unmapped in the child: here they are freed, and the sanitizer watches. */
TEST(a_fork_forgets_without_touching)
{
    enum { WAITS = 50 };
    hd_wait *waits = calloc(WAITS, sizeof(*waits)), after;
    open_sim((sim_faults){0});
    for (int i = 0; i < WAITS; i++) {
        CHECK_EQ(0, hd_wait_begin(&waits[i], &reactor, HD_WAIT_FOR_BLOCK, (hd_word)&waits[i],
                                  i % 2 ? HD_NO_DEADLINE : sim_now() + i));
        if (i % 3 == 0) CHECK(hd_wait_settle(&waits[i], HD_WOKEN_BY_UNBLOCK));
    }
    free(waits);
    hd_reactor_forget(&reactor, reactor.generation + 1);
    CHECK_EQ(0, hd_reactor_open(&reactor, &hd_backend_sim, false));
    check_idle();
    CHECK(!hd_next_ready(&reactor));
    CHECK_EQ(HD_NO_DEADLINE, hd_reactor_timeout(&reactor));
    CHECK_EQ(0, hd_wait_begin(&after, &reactor, HD_WAIT_FOR_SLEEP, 8, sim_now() + 10));
    sim_advance(10);
    poll_now();
    CHECK(hd_next_ready(&reactor) == &after);
    hd_wait_end(&after);
    close_setting();
}

TEST(names_of_backends)
{
    CHECK(hd_backend_named("epoll") == &hd_backend_epoll);
    CHECK(hd_backend_named("uring") == &hd_backend_uring);
    CHECK(hd_backend_named("poll") == &hd_backend_poll);
    CHECK(!hd_backend_named("select"));
    CHECK(!hd_backend_named(""));
}

TEST(each_backend_has_a_worse_one)
{
    char names[64], few[8];
    const hd_backend_ops *ops = hd_backends[0];
    for (int i = 0; hd_backends[i]; i++) {
        CHECK(hd_backends[i] == ops);
        ops = hd_backend_after(ops);
    }
    CHECK(!ops);
    hd_backend_names(names, sizeof(names));
    CHECK(strcmp(names, "uring, epoll, poll") == 0);
    hd_backend_names(few, sizeof(few));
    CHECK(strcmp(few, "uring, ") == 0);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(a_poll_is_due_after_64_switches);
    RUN(a_poll_is_due_after_a_millisecond);
    RUN(a_poll_is_due_when_a_deadline_has_come);
    RUN(a_turn_is_used_up);
    RUN(how_often_operations_look_at_the_clock);
    RUN(turns_are_short_when_many_wait);
    RUN(nobody_starves);
    RUN(the_timeout_of_a_turn);
    RUN(limits_and_timers_fire_in_one_order);
    RUN(a_limit_ends_the_sleep_of_the_loop);
    RUN(an_event_beats_a_timeout_of_the_same_turn);
    RUN(deadlines_and_events_take_turns);
    RUN(a_sleeping_owner_is_woken_once);
    RUN(arming_fails);
    RUN(a_fork_forgets_without_touching);
    RUN(names_of_backends);
    RUN(each_backend_has_a_worse_one);
    return test_finish();
}
