/* The latency of the loop (core/reactor.h), over the simulated backend: what hd_reactor_reap notes. */
#include "harness.h"

enum { WAITS = 5 };

static hd_wait waits[WAITS];

static void open_sim(void)
{
    static setting sim;
    sim = (setting){.name = "sim", .ops = &hd_backend_sim, .world = &sim_world};
    open_setting(&sim);
    poll_now();
}

static uint64_t noted(void)
{
    uint64_t count = 0;
    for (int i = 0; i < HD_HISTOGRAM_BUCKETS; i++) count += reactor.latency.counts[i];
    return count;
}

static void begin(int number)
{
    CHECK_EQ(0, hd_wait_begin(&waits[number], &reactor, HD_WAIT_FOR_BLOCK, (hd_word)&waits[number], HD_NO_DEADLINE));
}

/* The next one runs for this time, and ends. */
static void run_next(int number, int64_t duration_ns)
{
    CHECK(hd_next_ready(&reactor) == &waits[number]);
    sim_advance(duration_ns);
    hd_wait_end(&waits[number]);
}

TEST(looks_without_a_fiber_in_between_are_not_counted)
{
    open_sim();
    for (int i = 0; i < 10; i++) {
        sim_advance(HD_NS_PER_MS);
        poll_now();
    }
    CHECK_EQ(0, noted());
    close_setting();
}

/* What happens while a fiber runs waits until it parks. */
TEST(a_fiber_that_computes)
{
    open_sim();
    begin(0);
    CHECK(hd_wait_settle(&waits[0], HD_WOKEN_BY_UNBLOCK));
    run_next(0, 200 * HD_NS_PER_MS);
    poll_now();
    CHECK_EQ(1, noted());
    CHECK_EQ(200 * HD_NS_PER_MS, reactor.latency.max_ns);
    CHECK_EQ(200 * HD_NS_PER_MS, reactor.latency.sum_ns);
    close_setting();
}

/* The kernel is looked at after each, but those at the end of the queue have to wait for all others. */
TEST(a_long_queue)
{
    open_sim();
    for (int i = 0; i < WAITS; i++) begin(i);
    for (int i = 0; i < WAITS; i++) CHECK(hd_wait_settle(&waits[i], HD_WOKEN_BY_UNBLOCK));
    for (int i = 0; i < WAITS; i++) {
        run_next(i, HD_NS_PER_MS);
        poll_now();
    }
    CHECK_EQ(WAITS, noted());
    CHECK_EQ((WAITS - 1) * HD_NS_PER_MS, reactor.latency.max_ns);
    CHECK_EQ((1 + 2 + 3 + 4 + 1) * HD_NS_PER_MS, reactor.latency.sum_ns);
    close_setting();
}

/* So do those whose deadline has come. */
TEST(a_long_queue_of_sleepers)
{
    open_sim();
    for (int i = 0; i < WAITS; i++)
        CHECK_EQ(0, hd_wait_begin(&waits[i], &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&waits[i], sim_now() + 1000));
    sim_advance(1000);
    poll_now();
    for (int i = 0; i < WAITS; i++) {
        run_next(i, HD_NS_PER_MS);
        poll_now();
    }
    CHECK_EQ((WAITS - 1) * HD_NS_PER_MS, reactor.latency.max_ns);
    close_setting();
}

/* The time in the kernel, where the loop waits, is not counted. */
TEST(a_loop_that_rests)
{
    open_sim();
    begin(0);
    CHECK_EQ(0, hd_wait_begin(&waits[1], &reactor, HD_WAIT_FOR_SLEEP, (hd_word)&waits[1],
                              sim_now() + 5 * HD_NS_PER_SECOND));
    CHECK(hd_wait_settle(&waits[0], HD_WOKEN_BY_UNBLOCK));
    run_next(0, 3000);
    hd_reactor_poll_nogvl(&reactor, hd_reactor_timeout(&reactor));
    hd_reactor_reap(&reactor);
    CHECK_EQ(1, noted());
    CHECK_EQ(3000, reactor.latency.max_ns);
    run_next(1, 4000);
    poll_now();
    CHECK_EQ(2, noted());
    CHECK_EQ(4000, reactor.latency.max_ns);
    close_setting();
}

static void settle_two(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        CHECK(hd_wait_settle(&waits[i], HD_WOKEN_BY_UNBLOCK));
        hd_reactor_wake_if_asleep(&reactor);
    }
}

/* What another thread settles then is ready since that moment, not since the loop has last seen the clock. */
TEST(a_thread_that_settles_while_the_loop_rests)
{
    open_sim();
    begin(0), begin(1);
    sim_at(sim_now() + 5 * HD_NS_PER_SECOND, settle_two, NULL);
    reactor.asleep = reactor.rests = true;
    hd_reactor_poll_nogvl(&reactor, hd_reactor_timeout(&reactor));
    reactor.asleep = reactor.rests = false;
    hd_reactor_reap(&reactor);
    CHECK_EQ(0, noted());
    for (int i = 0; i < 2; i++) {
        run_next(i, 1000);
        poll_now();
    }
    CHECK_EQ(2, noted());
    CHECK_EQ(1000, reactor.latency.max_ns);
    close_setting();
}

TEST(a_fork_begins_anew)
{
    open_sim();
    begin(0);
    CHECK(hd_wait_settle(&waits[0], HD_WOKEN_BY_UNBLOCK));
    run_next(0, 1000);
    poll_now();
    CHECK_EQ(1, noted());
    hd_reactor_forget(&reactor, reactor.generation + 1);
    CHECK_EQ(0, noted());
    CHECK_EQ(0, reactor.latency.sum_ns);
    CHECK_EQ(0, reactor.latency.max_ns);
    CHECK_EQ(0, reactor.polls);
    CHECK_EQ(0, hd_reactor_open(&reactor, &hd_backend_sim, false));
    close_setting();
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(looks_without_a_fiber_in_between_are_not_counted);
    RUN(a_fiber_that_computes);
    RUN(a_long_queue);
    RUN(a_long_queue_of_sleepers);
    RUN(a_loop_that_rests);
    RUN(a_thread_that_settles_while_the_loop_rests);
    RUN(a_fork_begins_anew);
    return test_finish();
}
