/* core/wait.h: a wait is woken exactly once, whatever arrives late, twice or together, and hd_wait_end leaves it
 * in no structure, in whatever state it is. */
#include <poll.h>

#include "core/interest.h"
#include "endings.h"
#include "test.h"

static hd_reactor reactor;
static hd_map ios;
static int64_t now_ns;

static int64_t fake_now(void)
{
    return now_ns;
}

static void open_reactor(void)
{
    now_ns = 1000;
    hd_clock_replace(fake_now);
    CHECK_EQ(0, hd_map_init(&ios));
    CHECK_EQ(0, hd_reactor_init(&reactor, &ios, 0));
}

static void close_reactor(void)
{
    CHECK_EQ(0, reactor.waits.count);
    CHECK_EQ(0, reactor.chains.count);
    CHECK_EQ(0, reactor.timers.count);
    CHECK(!hd_reactor_has_ready(&reactor));
    hd_reactor_free(&reactor);
    hd_map_free(&ios);
    hd_clock_replace(NULL);
}

static void begin(hd_wait *wait, int64_t deadline_ns)
{
    CHECK_EQ(0, hd_wait_begin(wait, &reactor, HD_WAIT_FOR_BLOCK, (hd_word)wait, deadline_ns));
}

static void check_unlinked(const hd_wait *wait)
{
    CHECK(!hd_node_linked(&wait->ready_node));
    CHECK(!hd_timer_set(&wait->timer));
    CHECK(!hd_map_node_linked(&wait->fiber_node));
    CHECK(!hd_map_node_linked(&wait->root_node));
    CHECK_EQ(HD_WAIT_DONE, wait->state);
}

/* A wait that holds up another fiber is found by that one; most hold up their own, and cost nothing. */
TEST(found_by_its_root)
{
    hd_wait own, resumed;
    open_reactor();
    begin(&own, HD_NO_DEADLINE);
    hd_wait_for_root(&own, (hd_word)&own);
    CHECK_EQ(0, reactor.chains.count);
    begin(&resumed, HD_NO_DEADLINE);
    hd_wait_for_root(&resumed, 8);
    CHECK_EQ(8, resumed.root);
    CHECK(hd_map_find(&reactor.chains, 8) == &resumed.root_node);
    CHECK(hd_wait_settle(&resumed, HD_WOKEN_BY_EVENT));
    CHECK(hd_map_find(&reactor.chains, 8) == &resumed.root_node);
    hd_wait_end(&resumed), hd_wait_end(&own);
    check_unlinked(&resumed);
    hd_wait_begin_ready(&resumed, &reactor, (hd_word)&resumed, HD_IN_LINE);
    CHECK_EQ((hd_word)&resumed, resumed.root);
    hd_wait_for_root(&resumed, 8);
    hd_reactor_forget(&reactor, 1);
    CHECK(!hd_map_find(&reactor.chains, 8));
    hd_wait_end(&resumed); /* the child of a fork: linked nowhere */
    close_reactor();
}

TEST(one_life)
{
    hd_wait wait;
    open_reactor();
    begin(&wait, 2000);
    CHECK_EQ(HD_WAIT_PARKED, wait.state);
    CHECK_EQ(HD_WOKEN_NOT, wait.wake);
    CHECK_EQ(1000, wait.since_ns);
    CHECK_EQ((hd_word)&wait, hd_wait_fiber(&wait));
    CHECK(hd_map_find(&reactor.waits, (hd_word)&wait) == &wait.fiber_node);
    CHECK_EQ(2000, hd_timers_next(&reactor.timers));
    CHECK(!hd_next_ready(&reactor));
    CHECK(hd_wait_settle(&wait, HD_WOKEN_BY_UNBLOCK));
    CHECK_EQ(HD_WAIT_READY, wait.state);
    CHECK_EQ(0, reactor.timers.count);
    CHECK(hd_map_node_linked(&wait.fiber_node)); /* the GC still finds it */
    CHECK(hd_next_ready(&reactor) == &wait);
    CHECK_EQ(HD_WAIT_DONE, wait.state);
    CHECK_EQ(HD_WOKEN_BY_UNBLOCK, wait.wake);
    CHECK(!hd_next_ready(&reactor));
    hd_wait_end(&wait);
    check_unlinked(&wait);
    close_reactor();
}

/* What an unblock brings is not lost to a cause that has not reached the fiber. */
TEST(an_unblock_takes_the_place_of_an_exception_or_a_timeout)
{
    const hd_wake causes[] = {HD_WOKEN_BY_EVENT, HD_WOKEN_BY_TIMEOUT, HD_WOKEN_BY_UNBLOCK, HD_WOKEN_BY_EXCEPTION};
    for (int first = 0; first < 4; first++) {
        for (int has_run = 0; has_run < 2; has_run++) {
            hd_wait wait;
            hd_word displaced = 7;
            open_reactor();
            begin(&wait, 2000);
            bool gives_way = causes[first] == HD_WOKEN_BY_TIMEOUT || causes[first] == HD_WOKEN_BY_EXCEPTION;
            if (causes[first] == HD_WOKEN_BY_EXCEPTION)
                CHECK(settle_with_exception(&wait, 42));
            else
                CHECK(hd_wait_settle(&wait, causes[first]));
            if (has_run) CHECK(hd_next_ready(&reactor) == &wait);
            CHECK_EQ(gives_way, hd_wait_unblock_instead(&wait, &displaced));
            CHECK_EQ(causes[first] == HD_WOKEN_BY_EXCEPTION ? 42 : 0, displaced);
            CHECK_EQ(gives_way ? HD_WOKEN_BY_UNBLOCK : causes[first], wait.wake);
            CHECK_EQ(0, wait.exception);
            CHECK(!hd_wait_unblock_instead(&wait, &displaced));
            CHECK_EQ(has_run, !hd_reactor_has_ready(&reactor));
            hd_wait_end(&wait);
            check_unlinked(&wait);
            close_reactor();
        }
    }
}

/* Every pair of causes: the first one counts, the second does nothing; before and after the fiber has run. */
TEST(the_second_wake_does_nothing)
{
    const hd_wake causes[] = {HD_WOKEN_BY_EVENT, HD_WOKEN_BY_TIMEOUT, HD_WOKEN_BY_UNBLOCK, HD_WOKEN_BY_EXCEPTION};
    for (int first = 0; first < 4; first++) {
        for (int second = 0; second < 4; second++) {
            for (int when = 0; when < 3; when++) {
                hd_wait wait;
                open_reactor();
                begin(&wait, 2000);
                if (causes[first] == HD_WOKEN_BY_TIMEOUT)
                    CHECK_EQ(1, fire_due(&reactor.timers, 2000));
                else if (causes[first] == HD_WOKEN_BY_EXCEPTION)
                    CHECK(settle_with_exception(&wait, 42));
                else
                    CHECK(hd_wait_settle(&wait, causes[first]));
                if (when > 0) CHECK(hd_next_ready(&reactor) == &wait);
                if (when > 1) hd_wait_end(&wait);
                if (causes[second] == HD_WOKEN_BY_TIMEOUT)
                    CHECK_EQ(0, fire_due(&reactor.timers, INT64_MAX));
                else if (causes[second] == HD_WOKEN_BY_EXCEPTION)
                    CHECK(!settle_with_exception(&wait, 43));
                else
                    CHECK(!hd_wait_settle(&wait, causes[second]));
                CHECK_EQ(causes[first], wait.wake);
                CHECK_EQ(causes[first] == HD_WOKEN_BY_EXCEPTION ? 42 : 0, wait.exception);
                CHECK_EQ(when == 0, hd_reactor_has_ready(&reactor));
                hd_wait_end(&wait);
                hd_wait_end(&wait); /* an ensure may run after the normal end */
                check_unlinked(&wait);
                close_reactor();
            }
        }
    }
}

/* A raise at the switch ends a wait that nobody has woken, or that is ready and has not run. */
TEST(ended_in_every_state)
{
    for (int state = 0; state < 4; state++) {
        hd_wait wait, others[2];
        open_reactor();
        begin(&others[0], 2000);
        begin(&wait, 2000);
        begin(&others[1], 2000);
        if (state > 0) {
            for (int i = 0; i < 2; i++) CHECK(hd_wait_settle(&others[i], HD_WOKEN_BY_EVENT));
            CHECK(hd_wait_settle(&wait, HD_WOKEN_BY_EVENT));
        }
        if (state > 1) CHECK(hd_next_ready(&reactor) == &others[0]);
        if (state > 2) {
            CHECK(hd_next_ready(&reactor) == &others[1]);
            CHECK(hd_next_ready(&reactor) == &wait);
        }
        hd_wait_end(&wait);
        check_unlinked(&wait);
        CHECK_EQ(state == 0 ? 2 : 0, fire_due(&reactor.timers, 2000));
        for (int i = 0; i < 2; i++) hd_wait_end(&others[i]);
        close_reactor();
    }
}

TEST(the_record_is_used_again)
{
    hd_wait wait;
    open_reactor();
    for (int round = 0; round < 4; round++) {
        begin(&wait, now_ns + 10);
        if (round % 2)
            CHECK_EQ(1, fire_due(&reactor.timers, now_ns += 10));
        else
            CHECK(hd_wait_settle(&wait, HD_WOKEN_BY_UNBLOCK));
        CHECK(hd_next_ready(&reactor) == &wait);
        CHECK_EQ(round % 2 ? HD_WOKEN_BY_TIMEOUT : HD_WOKEN_BY_UNBLOCK, wait.wake);
        hd_wait_end(&wait);
    }
    close_reactor();
}

TEST(first_come_first_served_but_the_front)
{
    hd_wait waits[6];
    open_reactor();
    begin(&waits[0], HD_NO_DEADLINE);
    begin(&waits[1], HD_NO_DEADLINE);
    CHECK(hd_wait_settle(&waits[1], HD_WOKEN_BY_EVENT));
    hd_wait_begin_ready(&waits[2], &reactor, (hd_word)&waits[2], HD_IN_LINE);
    CHECK(hd_wait_settle(&waits[0], HD_WOKEN_BY_EVENT));
    hd_wait_begin_ready(&waits[3], &reactor, (hd_word)&waits[3], HD_IN_FRONT);
    hd_wait_begin_ready(&waits[4], &reactor, (hd_word)&waits[4], HD_IN_FRONT);
    begin(&waits[5], 0);
    CHECK_EQ(1, fire_due(&reactor.timers, now_ns));
    const int order[] = {4, 3, 1, 2, 0, 5};
    for (int i = 0; i < 6; i++) CHECK(hd_next_ready(&reactor) == &waits[order[i]]);
    CHECK(!hd_next_ready(&reactor));
    CHECK(!hd_wait_settle(&waits[3], HD_WOKEN_BY_TIMEOUT));
    for (int i = 0; i < 6; i++) hd_wait_end(&waits[i]);
    close_reactor();
}

TEST(a_deadline_overtakes_what_became_ready_later)
{
    hd_wait waits[6];
    open_reactor();
    hd_wait_begin_ready(&waits[0], &reactor, (hd_word)&waits[0], HD_IN_LINE);
    begin(&waits[1], 0);
    begin(&waits[2], 0);
    begin(&waits[3], HD_NO_DEADLINE);
    CHECK(hd_wait_settle(&waits[3], HD_WOKEN_BY_EVENT));
    hd_wait_begin_ready(&waits[4], &reactor, (hd_word)&waits[4], HD_IN_LINE);
    CHECK_EQ(2, fire_due(&reactor.timers, now_ns));
    hd_wait_begin_ready(&waits[5], &reactor, (hd_word)&waits[5], HD_IN_FRONT);
    const int order[] = {5, 0, 1, 3, 2, 4};
    for (int i = 0; i < 6; i++) CHECK(hd_next_ready(&reactor) == &waits[order[i]]);
    CHECK(!hd_next_ready(&reactor));
    for (int i = 0; i < 6; i++) hd_wait_end(&waits[i]);
    close_reactor();
}

/* Fibers whose deadline comes again and again leave every second turn to the others, and the other way round. */
TEST(deadlines_and_others_take_turns)
{
    hd_wait sleeper, yielder;
    int slept = 0, yielded = 0;
    open_reactor();
    begin(&sleeper, 0);
    hd_wait_begin_ready(&yielder, &reactor, (hd_word)&yielder, HD_IN_LINE);
    for (int i = 0; i < 100; i++) {
        fire_due(&reactor.timers, now_ns);
        hd_wait *next = hd_next_ready(&reactor);
        hd_wait_end(next);
        CHECK_EQ(i % 2 == 0, next == &sleeper);
        if (next == &sleeper)
            slept++, begin(&sleeper, 0);
        else
            yielded++, hd_wait_begin_ready(&yielder, &reactor, (hd_word)&yielder, HD_IN_LINE);
    }
    CHECK_EQ(50, slept);
    CHECK_EQ(50, yielded);
    hd_wait_end(&sleeper);
    hd_wait_end(&yielder);
    close_reactor();
}

/* Whoever an event has woken runs before those whose turn was used up, which run in the order in which they came. */
TEST(some_stand_behind)
{
    hd_wait waits[6];
    open_reactor();
    hd_wait_begin_ready(&waits[0], &reactor, (hd_word)&waits[0], HD_BEHIND);
    begin(&waits[1], HD_NO_DEADLINE);
    begin(&waits[2], 0);
    hd_wait_begin_ready(&waits[3], &reactor, (hd_word)&waits[3], HD_BEHIND);
    CHECK(hd_wait_settle(&waits[1], HD_WOKEN_BY_EVENT));
    CHECK_EQ(1, fire_due(&reactor.timers, now_ns));
    hd_wait_begin_ready(&waits[4], &reactor, (hd_word)&waits[4], HD_IN_LINE);
    hd_wait_begin_ready(&waits[5], &reactor, (hd_word)&waits[5], HD_IN_FRONT);
    CHECK_EQ(2, reactor.behind_count);
    CHECK(hd_next_ready(&reactor) == &waits[5]);
    for (int i = 0; i < 3; i++) CHECK(hd_next_ready(&reactor)->place == HD_IN_LINE);
    hd_wait_end(&waits[0]); /* its fiber was killed */
    CHECK_EQ(1, reactor.behind_count);
    CHECK(hd_next_ready(&reactor) == &waits[3]);
    CHECK_EQ(0, reactor.behind_count);
    CHECK(!hd_next_ready(&reactor));
    for (int i = 1; i < 6; i++) hd_wait_end(&waits[i]);
    close_reactor();
}

/* Whoever yields lets the first one of those behind run, if that was there before; but not what comes later. */
TEST(one_of_those_behind_comes_before_a_fiber_that_yields)
{
    hd_wait waits[5];
    open_reactor();
    hd_wait_begin_ready(&waits[0], &reactor, (hd_word)&waits[0], HD_BEHIND);
    hd_wait_begin_ready(&waits[1], &reactor, (hd_word)&waits[1], HD_BEHIND);
    hd_wait_begin_ready(&waits[2], &reactor, (hd_word)&waits[2], HD_YIELDS);
    hd_wait_begin_ready(&waits[3], &reactor, (hd_word)&waits[3], HD_IN_LINE);
    int expected[] = {0, 2, 3, 1};
    for (int i = 0; i < 4; i++) CHECK(hd_next_ready(&reactor) == &waits[expected[i]]);
    hd_wait_end(&waits[2]);
    hd_wait_begin_ready(&waits[2], &reactor, (hd_word)&waits[2], HD_YIELDS);
    hd_wait_begin_ready(&waits[4], &reactor, (hd_word)&waits[4], HD_BEHIND);
    CHECK(hd_next_ready(&reactor) == &waits[2]);
    CHECK(hd_next_ready(&reactor) == &waits[4]);
    for (int i = 0; i < 5; i++) hd_wait_end(&waits[i]);
    close_reactor();
}

/* Each of the fibers that stand behind runs for a number of turns, beside events that never end: these leave a turn
 * now and then to the fibers behind, which all have theirs. */
static void check_those_behind(int turns_each)
{
    hd_wait woken, greedy[3];
    int turns[3] = {0}, events = 0;
    open_reactor();
    for (int i = 0; i < 3; i++) hd_wait_begin_ready(&greedy[i], &reactor, (hd_word)&greedy[i], HD_BEHIND);
    begin(&woken, HD_NO_DEADLINE);
    for (int i = 0; i < 3000; i++) {
        if (woken.state == HD_WAIT_PARKED) CHECK(hd_wait_settle(&woken, HD_WOKEN_BY_EVENT));
        hd_wait *next = hd_next_ready(&reactor);
        hd_wait_end(next);
        reactor.now_ns = now_ns += next == &woken ? HD_NS_PER_TURN / 10 : turns_each * HD_NS_PER_TURN;
        if (next == &woken) {
            events++;
            begin(&woken, HD_NO_DEADLINE);
            continue;
        }
        turns[next - greedy]++;
        hd_wait_begin_ready(next, &reactor, (hd_word)next, HD_BEHIND);
    }
    for (int i = 0; i < 3; i++) CHECK_AT_LEAST(turns[0] - turns[i] + 1, 2);
    CHECK_AT_LEAST(70, turns[0] * 3);
    CHECK_AT_LEAST(2500, events);
    hd_wait_end(&woken);
    for (int i = 0; i < 3; i++) hd_wait_end(&greedy[i]);
    close_reactor();
}

TEST(those_behind_are_not_passed_over_for_ever)
{
    check_those_behind(1);
}

/* As with time slices: the time of one of them does not count for the others. */
TEST(those_behind_that_run_for_long_do_not_overtake_all_others)
{
    check_those_behind(10);
}

TEST(deadlines_past_far_and_none)
{
    hd_wait past, far, none;
    open_reactor();
    begin(&past, 0);
    begin(&far, HD_NO_DEADLINE - 1);
    begin(&none, HD_NO_DEADLINE);
    CHECK_EQ(2, reactor.timers.count);
    CHECK_EQ(0, hd_reactor_timeout(&reactor));
    CHECK_EQ(1, fire_due(&reactor.timers, now_ns));
    CHECK(hd_next_ready(&reactor) == &past);
    CHECK_EQ(HD_NO_DEADLINE - 1 - now_ns, hd_reactor_timeout(&reactor));
    hd_wait_end(&past);
    hd_wait_end(&far);
    CHECK_EQ(HD_NO_DEADLINE, hd_reactor_timeout(&reactor));
    hd_wait_end(&none);
    close_reactor();
}

TEST(misuse_is_caught)
{
    hd_wait wait, twin;
    open_reactor();
    begin(&wait, HD_NO_DEADLINE);
    CHECK_ABORTS((hd_wait_settle(&wait, HD_WOKEN_BY_EVENT), wait.state = HD_WAIT_PARKED, hd_next_ready(&reactor)));
    CHECK_EQ(0, hd_wait_begin(&twin, &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&wait, HD_NO_DEADLINE));
    CHECK_ABORTS(hd_wait_end(&wait)); /* the other one of its fiber is above it */
    hd_wait_end(&twin);
    hd_wait_end(&wait);
    close_reactor();
}

TEST(ready_events)
{
    for (short asked = 0; asked < 64; asked++) {
        for (short seen = 0; seen < 64; seen++) {
            short heard = seen & (asked | POLLERR | POLLHUP);
            short sets = (heard & (POLLIN | POLLHUP | POLLERR) ? POLLIN : 0) |
                         (heard & (POLLOUT | POLLERR) ? POLLOUT : 0) | (heard & POLLPRI);
            CHECK_EQ(seen & POLLNVAL ? asked : sets, hd_events_ready(asked, seen));
            CHECK_EQ(seen & POLLNVAL ? POLLNVAL : hd_events_ready(7, seen) & asked, hd_events_selected(asked, seen));
        }
    }
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(one_life);
    RUN(found_by_its_root);
    RUN(an_unblock_takes_the_place_of_an_exception_or_a_timeout);
    RUN(the_second_wake_does_nothing);
    RUN(ended_in_every_state);
    RUN(the_record_is_used_again);
    RUN(first_come_first_served_but_the_front);
    RUN(a_deadline_overtakes_what_became_ready_later);
    RUN(deadlines_and_others_take_turns);
    RUN(some_stand_behind);
    RUN(one_of_those_behind_comes_before_a_fiber_that_yields);
    RUN(those_behind_are_not_passed_over_for_ever);
    RUN(those_behind_that_run_for_long_do_not_overtake_all_others);
    RUN(deadlines_past_far_and_none);
    RUN(misuse_is_caught);
    RUN(ready_events);
    return test_finish();
}
