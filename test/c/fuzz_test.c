/* Random arms, disarms, reads, writes, hang-ups, closes and turns over every backend, against what poll(2) says
 * of the descriptors: no waiter whose descriptor is ready is left behind, none is woken by an event that never
 * was, none by a timeout before its deadline. */
#include "harness.h"

enum { PAIRS = 6, FDS = 2 * PAIRS, WAITERS = 40, STEPS = 3000 };

typedef struct {
    waiter waiter;
    bool parked;
    bool seen; /* what it waits for has been there since it was armed */
    int fd_index;
} model_waiter;

static int fds[FDS];
static model_waiter *waiters[WAITERS]; /* on the heap, a new record each time: the sanitizer sees a late touch */

static short answer_of(const model_waiter *w)
{
    return hd_events_ready(w->waiter.interest.events, world->ready(fds[w->fd_index]));
}

/* After everything that may change readiness. */
static void note_readiness(void)
{
    for (int i = 0; i < WAITERS; i++)
        if (waiters[i] && answer_of(waiters[i])) waiters[i]->seen = true;
}

static void end_wait(int index)
{
    unpark(&waiters[index]->waiter);
    memset(waiters[index], 0xEE, sizeof(*waiters[index]));
    free(waiters[index]);
    waiters[index] = NULL;
}

static void start_wait(int index)
{
    static const short choices[] = {POLLIN, POLLOUT, POLLIN | POLLOUT, POLLIN | POLLPRI, POLLPRI};
    model_waiter *w = waiters[index] = calloc(1, sizeof(*w));
    CHECK(w);
    w->fd_index = (int)rnd(FDS);
    int64_t timeout_ns = chance(70) ? HD_NO_DEADLINE : (int64_t)rnd(3 * HD_NS_PER_MS);
    CHECK_EQ(0, park_for(&w->waiter, fds[w->fd_index], choices[rnd(5)], timeout_ns));
    note_readiness();
}

static void check_woken(void)
{
    for (int i = 0; i < WAITERS; i++) {
        if (!waiters[i] || !waiters[i]->waiter.woken) continue;
        hd_wait *wait = &waiters[i]->waiter.wait;
        hd_interest *interest = &waiters[i]->waiter.interest;
        if (wait->wake == HD_WOKEN_BY_TIMEOUT) {
            CHECK_AT_LEAST(wait->timer.deadline_ns, hd_clock_now());
            CHECK_EQ(0, interest->revents);
        } else {
            CHECK_EQ(HD_WOKEN_BY_EVENT, wait->wake);
            CHECK(interest->revents);
            CHECK_EQ(0, interest->revents & ~(interest->events | POLLIN | POLLOUT)); /* (an error, a hang-up) */
            CHECK(waiters[i]->seen);
        }
        end_wait(i);
    }
}

static void new_pair(int at)
{
    CHECK_EQ(0, world->pair(&fds[at]));
}

/* As hooks/ closes: whoever waits is taken off, then the kernel lets go, then the number is free. */
static void replace_pair(int at)
{
    for (int i = 0; i < WAITERS; i++)
        if (waiters[i] && waiters[i]->fd_index / 2 == at / 2) end_wait(i);
    if (chance(70)) now_on->ops->release_files(reactor.backend);
    world->close(fds[at]);
    world->close(fds[at + 1]);
    new_pair(at);
}

/* Every waiter whose descriptor is ready now must be woken soon. */
static void check_nobody_is_left(void)
{
    int64_t end_ns = hd_clock_now() + 5 * HD_NS_PER_SECOND;
    for (;;) {
        turn(0);
        check_woken();
        int left = -1;
        for (int i = 0; i < WAITERS; i++)
            if (waiters[i] && answer_of(waiters[i])) left = i;
        if (left < 0) return;
        if (hd_clock_now() > end_ns)
            FAIL("nobody wakes a waiter for %#x on a descriptor that shows %#x",
                 (unsigned)waiters[left]->waiter.interest.events, (unsigned)world->ready(fds[waiters[left]->fd_index]));
        if (!world->real) sim_advance(100000);
    }
}

static void step(void)
{
    int index = (int)rnd(WAITERS), fd = (int)rnd(FDS);
    switch (rnd(8)) {
    case 0:
    case 1:
    case 2:
        if (!waiters[index]) start_wait(index);
        break;
    case 3:
        if (waiters[index]) end_wait(index);
        break;
    case 4:
        world->write(fds[fd], 1);
        note_readiness();
        break;
    case 5:
        world->read(fds[fd]);
        break;
    case 6:
        turn(chance(80) ? 0 : 100000);
        check_woken();
        break;
    case 7:
        if (chance(10)) replace_pair(fd & ~1);
        if (chance(5)) now_on->ops->wake(reactor.backend);
        if (chance(5)) check_nobody_is_left();
        break;
    }
}

CONTRACT(random_operations)
{
    for (int at = 0; at < FDS; at += 2) new_pair(at);
    for (int i = 0; i < STEPS; i++) step();
    check_nobody_is_left();
    for (int i = 0; i < WAITERS; i++)
        if (waiters[i]) end_wait(i);
    now_on->ops->release_files(reactor.backend);
    for (int i = 0; i < FDS; i++) world->close(fds[i]);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(random_operations);
    return test_finish();
}
