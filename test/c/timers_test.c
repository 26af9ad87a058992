/* core/timers.h and core/clock.h: random and exhaustive runs of the heap against a plain array. A timer fires
 * never early, exactly once, in the order of (deadline, arrival). */
#include "core/check.h"
#include "core/clock.h"
#include "core/timers.h"
#include "endings.h"
#include "test.h"

enum { TIMERS = 500 };

typedef struct {
    hd_timer timer;
    bool set;
    int64_t deadline_ns;
    uint64_t arrival;
} entry;

static entry entries[TIMERS];
static hd_timers timers;
static uint64_t arrivals;
static int64_t now_ns;
static int fired_count;
static void (*on_fire)(entry *entry);

/* The set entry that is due first, or NULL. */
static entry *model_first(void)
{
    entry *first = NULL;
    for (entry *e = entries; e < entries + TIMERS; e++)
        if (e->set && (!first || e->deadline_ns < first->deadline_ns ||
                       (e->deadline_ns == first->deadline_ns && e->arrival < first->arrival)))
            first = e;
    return first;
}

static void fire(hd_timer *timer)
{
    entry *e = HD_CONTAINER_OF(timer, entry, timer);
    CHECK(e->set);
    CHECK(e == model_first());
    CHECK_AT_LEAST(e->deadline_ns, now_ns);
    CHECK(!hd_timer_set(timer));
    e->set = false;
    fired_count++;
    if (on_fire) on_fire(e);
}

static void reset(void)
{
    memset(entries, 0, sizeof(entries));
    for (int i = 0; i < TIMERS; i++) entries[i].timer.fire = fire;
    hd_timers_init(&timers);
    arrivals = 0;
    now_ns = fired_count = 0;
    on_fire = NULL;
}

static void add(entry *e, int64_t deadline_ns)
{
    CHECK_EQ(0, hd_timers_add(&timers, &e->timer, deadline_ns));
    e->set = true;
    e->deadline_ns = deadline_ns;
    e->arrival = arrivals++;
}

static void take(entry *e)
{
    hd_timers_remove(&timers, &e->timer);
    e->set = false;
}

static void compare(void)
{
    size_t count = 0;
    for (entry *e = entries; e < entries + TIMERS; e++) {
        CHECK_EQ(e->set, hd_timer_set(&e->timer));
        count += e->set;
    }
    CHECK_EQ(count, timers.count);
    entry *first = model_first();
    CHECK_EQ(first ? first->deadline_ns : HD_NO_DEADLINE, hd_timers_next(&timers));
}

static void fire_until(int64_t until_ns)
{
    size_t due = 0;
    now_ns = until_ns;
    for (entry *e = entries; e < entries + TIMERS; e++) due += e->set && e->deadline_ns <= until_ns;
    size_t fired = fire_due(&timers, until_ns);
    if (!on_fire) CHECK_EQ(due, fired);
    compare();
}

TEST(no_timers)
{
    reset();
    compare();
    CHECK_EQ(0, fire_due(&timers, INT64_MAX));
    CHECK_EQ(HD_NO_DEADLINE, hd_timers_next(&timers));
    hd_timers_free(&timers);
    hd_timers_free(&timers);
}

/* redis's ae.c crashed on the second turn after its only timer had fired. */
TEST(one_timer)
{
    reset();
    for (int round = 0; round < 3; round++) {
        add(&entries[0], 100);
        fire_until(99);
        CHECK_EQ(round, fired_count);
        fire_until(100);
        CHECK_EQ(round + 1, fired_count);
        fire_until(100);
        fire_until(INT64_MAX);
        CHECK_EQ(round + 1, fired_count);
    }
    add(&entries[0], 5);
    take(&entries[0]);
    fire_until(INT64_MAX);
    CHECK_EQ(3, fired_count);
    hd_timers_free(&timers);
}

/* 1 to 5 timers with every choice of 3 deadlines, then: one is removed (or none), the rest fire step by step. */
TEST(exhaustive_small_heaps)
{
    for (int size = 1; size <= 5; size++) {
        int choices = 1;
        for (int i = 0; i < size; i++) choices *= 3;
        for (int choice = 0; choice < choices; choice++) {
            for (int removed = -1; removed < size; removed++) {
                reset();
                for (int i = 0, code = choice; i < size; i++, code /= 3) add(&entries[i], 10 * (code % 3));
                compare();
                if (removed >= 0) take(&entries[removed]);
                compare();
                for (int64_t until = -1; until <= 21; until += 11) fire_until(until);
                CHECK_EQ(size - (removed >= 0), fired_count);
                CHECK_EQ(0, timers.count);
                hd_timers_free(&timers);
            }
        }
    }
}

TEST(random_against_array)
{
    for (int round = 0; round < 6; round++) {
        reset();
        int64_t spread = (int64_t[]){1, 10, 1000, 1000000000}[rnd(4)], time = 0;
        unsigned add_percent = (unsigned)(30 + rnd(50));
        for (int step = 0; step < 4000; step++) {
            entry *e = &entries[rnd(TIMERS)];
            if (!e->set && chance(add_percent))
                add(e, time - 5 + (int64_t)rnd((uint64_t)spread)); /* some are due already */
            else if (e->set && chance(70))
                take(e);
            else if (chance(10))
                fire_until(time += (int64_t)rnd((uint64_t)spread));
            if (step % 16 == 0) compare();
        }
        fire_until(HD_NO_DEADLINE);
        CHECK_EQ(0, timers.count);
        hd_timers_free(&timers);
    }
}

static void remove_another(entry *fired)
{
    entry *other = &entries[rnd(TIMERS)];
    if (other != fired && other->set) take(other);
    if (rnd(2)) add(fired, now_ns + 1 + (int64_t)rnd(100));
}

/* A wait that is settled by its timer may be the reason that others are cancelled or set anew. */
TEST(timers_change_while_they_fire)
{
    reset();
    on_fire = remove_another;
    for (int i = 0; i < TIMERS; i++) add(&entries[i], (int64_t)rnd(100));
    for (int64_t time = 0; time < 400; time += (int64_t)rnd(20)) fire_until(time);
    on_fire = NULL;
    fire_until(INT64_MAX);
    CHECK_EQ(0, timers.count);
    hd_timers_free(&timers);
}

TEST(memory_follows_use)
{
    enum { MANY = 200000 };
    reset();
    hd_timer *many = calloc(MANY, sizeof(*many));
    CHECK(many);
    for (int i = 0; i < MANY; i++) CHECK_EQ(0, hd_timers_add(&timers, &many[i], (int64_t)rnd(1000)));
    CHECK_AT_LEAST(MANY, timers.capacity);
    for (int i = 0; i < MANY; i++) hd_timers_remove(&timers, &many[i]);
    CHECK_AT_LEAST(timers.capacity, 1024);
    CHECK_EQ(HD_NO_DEADLINE, hd_timers_next(&timers));
    free(many);
    hd_timers_free(&timers);
}

TEST(extreme_deadlines)
{
    reset();
    add(&entries[0], INT64_MAX - 1);
    add(&entries[1], INT64_MIN);
    add(&entries[2], 0);
    fire_until(INT64_MIN);
    CHECK_EQ(1, fired_count);
    fire_until(INT64_MAX - 2);
    CHECK_EQ(2, fired_count);
    fire_until(INT64_MAX - 1);
    CHECK_EQ(3, fired_count);
    hd_timers_free(&timers);
}

TEST(double_set_and_remove_are_caught)
{
    reset();
    CHECK_ABORTS(hd_timers_remove(&timers, &entries[0].timer));
    add(&entries[0], 1);
    CHECK_ABORTS((void)hd_timers_add(&timers, &entries[0].timer, 2));
    take(&entries[0]);
    CHECK_ABORTS(hd_timers_remove(&timers, &entries[0].timer));
    hd_timers_free(&timers);
}

static int64_t frozen(void)
{
    return 1234;
}

TEST(the_clock)
{
    int64_t first = hd_clock_now();
    CHECK_AT_LEAST(first, hd_clock_now());
    hd_clock_replace(frozen);
    CHECK_EQ(1234, hd_clock_now());
    hd_clock_replace(NULL);
    CHECK_AT_LEAST(first, hd_clock_now());
    CHECK_EQ(15, hd_clock_deadline(10, 5));
    CHECK_EQ(10, hd_clock_deadline(10, 0));
    CHECK_EQ(HD_NO_DEADLINE, hd_clock_deadline(10, HD_NO_DEADLINE));
    CHECK_EQ(HD_NO_DEADLINE, hd_clock_deadline(10, HD_NO_DEADLINE - 10));
    CHECK_EQ(HD_NO_DEADLINE - 1, hd_clock_deadline(10, HD_NO_DEADLINE - 11));
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(no_timers);
    RUN(one_timer);
    RUN(exhaustive_small_heaps);
    RUN(random_against_array);
    RUN(timers_change_while_they_fire);
    RUN(memory_follows_use);
    RUN(extreme_deadlines);
    RUN(double_set_and_remove_are_caught);
    RUN(the_clock);
    return test_finish();
}
