/* Seeded random runs of the reactor over the simulated backend: fibers park with and without deadlines, on events
 * and on nothing, or compute until their time slices are over; others settle them, raise in them, close their
 * descriptors; time jumps; completions come late, twice, out of order. A model knows who may be woken by which event.
 * It checks that each wait is woken exactly once, for a reason that is true, not before its deadline, in order; that
 * nobody is forgotten, and nobody who is woken waits for two that compute; and that nothing stays linked in the end.
 * A seed always gives the same run. */
#include "harness.h"

enum { FIBERS = 60, PAIRS = 10, FDS = 2 * PAIRS, STEPS = 4000, INTERESTS_MAX = 4, SLICE_NS_MAX = 6 * HD_NS_PER_MS };

typedef enum { IDLE, PARKED, READY } model_state;

typedef struct {
    hd_wait wait;
    hd_interest interests[INTERESTS_MAX];
} record;

typedef struct {
    record *record; /* heap memory of this one wait: the sanitizer sees any touch after its end */
    model_state state;
    hd_wake cause; /* valid when READY */
    hd_word exception;
    int64_t deadline_ns;
    hd_place place; /* where it stands when it is ready */
    uint64_t order; /* when it was parked, or became ready by something else than its deadline */
    int interests;
    int fd_index[INTERESTS_MAX];
    bool seen; /* one of its events has been there since it was armed */
} fiber;

static fiber fibers[FIBERS];

typedef struct {
    int fibers[FIBERS], length;
} line;

/* Who can run, as it must be: those whose deadline has come by themselves, and those behind by themselves. */
static line ready, due, behind;
static bool due_was_last, behind_was_last;
static int64_t behind_ns; /* when the turn of one of those behind ended last, or the first of them came */
static bool woken_before; /* one that was woken was ready when the last one behind was taken, right before */
static uint64_t sequence;
static int64_t turn_began_ns; /* of the fiber that was taken last, but for one in front */
static int fds[FDS];
static bool event_stays[FIBERS];  /* an event of this parked fiber is there, since the last turn or longer */
static int64_t looked_ns[FIBERS]; /* ... and a turn has ended then that found it so from its start; 0 = not yet */
static uint64_t trace;                 /* hash of all that happened */
static int wakes[HD_WOKEN_BY_EXCEPTION + 1];
static int slices;                     /* time slices that have ended */
static bool finishing;                 /* nobody computes any longer */
static sim_faults faults;

static void note(uint64_t what)
{
    trace = (trace ^ what) * UINT64_C(0x100000001B3);
}

static fiber *fiber_of(const hd_wait *wait)
{
    return &fibers[hd_wait_fiber(wait) / 8 - 1];
}

static hd_word word_of(const fiber *f)
{
    return (hd_word)(f - fibers + 1) * 8;
}

/* -- the model ----------------------------------------------------------------------------------------------- */

static bool event_there(const fiber *f)
{
    for (int i = 0; i < f->interests; i++)
        if (hd_events_ready(f->record->interests[i].events, sim_ready(fds[f->fd_index[i]]))) return true;
    return false;
}

static void note_events(void)
{
    for (int i = 0; i < FIBERS; i++) {
        fiber *f = &fibers[i];
        bool there = f->state == PARKED && event_there(f);
        f->seen |= there;
        event_stays[i] = there && f->interests == 1;
        if (!there) looked_ns[i] = 0;
    }
}

static void model_ready(fiber *f, hd_wake cause)
{
    bool front = f->place == HD_IN_FRONT;
    line *of = f->place == HD_BEHIND ? &behind : cause == HD_WOKEN_BY_TIMEOUT ? &due : &ready;
    if (f->place == HD_BEHIND && !behind.length) behind_ns = reactor.now_ns;
    f->state = READY;
    f->cause = cause;
    if (cause != HD_WOKEN_BY_TIMEOUT) f->order = ++sequence;
    if (front) memmove(&of->fibers[1], &of->fibers[0], (size_t)of->length * sizeof(*of->fibers));
    of->fibers[front ? 0 : of->length] = (int)(f - fibers);
    of->length++;
}

static void model_remove(fiber *f)
{
    line *lines[] = {&ready, &due, &behind};
    for (int l = 0; l < 3; l++)
        for (int i = 0, *in = lines[l]->fibers; i < lines[l]->length; i++)
            if (in[i] == f - fibers) memmove(&in[i], &in[i + 1], (size_t)(--lines[l]->length - i) * sizeof(*in));
    f->state = IDLE;
}

static bool can_run(void)
{
    return ready.length || due.length || behind.length;
}

/* Does this fiber let the first one behind run before it? It does so once. */
static bool yields(fiber *f)
{
    if (f->place != HD_YIELDS) return false;
    f->place = HD_IN_LINE;
    return fibers[behind.fibers[0]].order < f->order;
}

/* Who must run next, taken out of the model; or -1. */
static int model_next(void)
{
    if (behind_was_last) behind_ns = reactor.now_ns;
    if (!ready.length && !due.length && !behind.length) return -1;
    const fiber *first = ready.length ? &fibers[ready.fibers[0]] : NULL;
    bool front = first && first->place == HD_IN_FRONT;
    bool passed_over = behind.length && !front && reactor.now_ns - behind_ns >= HD_NS_PASSED_OVER;
    bool waits = first && (due_was_last || front || first->order < fibers[due.fibers[0]].order);
    if (!passed_over) due_was_last = due.length && !waits;
    bool woken = ready.length || due.length;
    line *of = passed_over || !woken ? &behind : due_was_last ? &due : &ready;
    if (behind.length && of != &behind && !behind_was_last && yields(&fibers[of->fibers[0]])) of = &behind;
    behind_was_last = of == &behind;
    CHECK(!(behind_was_last && woken && woken_before)); /* one that was woken waits for one slice, not for two */
    woken_before = behind_was_last && woken;
    int next = of->fibers[0];
    memmove(&of->fibers[0], &of->fibers[1], (size_t)--of->length * sizeof(*of->fibers));
    return next;
}

/* The lists are as the model says: a fiber is in the table from begin to end, a timer while it is parked. */
static void check_links(void)
{
    size_t waits = 0, timers = 0, armed = 0, in_ios = 0;
    for (fiber *f = fibers; f < fibers + FIBERS; f++) {
        if (f->state == IDLE) continue;
        waits++;
        timers += f->state == PARKED && f->deadline_ns != HD_NO_DEADLINE;
        CHECK_EQ(f->state == READY, hd_node_linked(&f->record->wait.ready_node));
        for (int i = 0; i < f->interests; i++) {
            armed += f->record->interests[i].token != 0;
            in_ios += hd_map_node_linked(&f->record->interests[i].io_node);
        }
    }
    CHECK_EQ(waits, reactor.waits.count);
    CHECK_EQ(timers, reactor.timers.count);
    CHECK_EQ(armed, reactor.armed);
    CHECK_EQ(in_ios, ios.count);
}

/* -- what fibers do ------------------------------------------------------------------------------------------- */

static void end_wait(fiber *f)
{
    for (int i = 0; i < f->interests; i++) hd_interest_disarm(&f->record->interests[i]);
    hd_wait_end(&f->record->wait);
    memset(f->record, 0xEE, sizeof(*f->record));
    free(f->record);
    *f = (fiber){0};
    event_stays[f - fibers] = false;
    looked_ns[f - fibers] = 0;
}

static void park_fiber(fiber *f)
{
    static const short events[] = {POLLIN, POLLOUT, POLLIN | POLLOUT, POLLPRI, POLLIN | POLLPRI};
    int64_t timeout_ns = chance(40) ? HD_NO_DEADLINE : (int64_t)rnd(1000 + rnd(20 * HD_NS_PER_MS));
    f->record = calloc(1, sizeof(*f->record));
    CHECK(f->record);
    if (chance(10)) {
        f->place = (hd_place)rnd(4);
        hd_wait_begin_ready(&f->record->wait, &reactor, word_of(f), f->place);
        f->deadline_ns = HD_NO_DEADLINE;
        model_ready(f, HD_WOKEN_BY_EVENT);
        return;
    }
    int interests = chance(60) ? 1 + (int)rnd(chance(80) ? 1 : INTERESTS_MAX) : 0;
    f->deadline_ns = hd_clock_deadline(sim_now(), timeout_ns);
    f->state = PARKED;
    f->order = ++sequence;
    CHECK_EQ(0, hd_wait_begin(&f->record->wait, &reactor, interests ? HD_WAIT_FOR_IO : HD_WAIT_FOR_BLOCK, word_of(f),
                              f->deadline_ns));
    for (; f->interests < interests; f->interests++) {
        int fd_index = (int)rnd(FDS);
        f->fd_index[f->interests] = fd_index;
        int error = hd_interest_arm(&f->record->interests[f->interests], &f->record->wait, (hd_word)fd_index + 1,
                                    fds[fd_index], events[rnd(5)]);
        if (!error) continue;
        CHECK(error == -ENOMEM || error == -EAGAIN);
        CHECK(faults.arm_error_percent);
        end_wait(f);
        return;
    }
    f->seen = event_there(f);
}

/* unblock, raise, cancel: by another fiber, or by another thread while the owner is in poll. */
static void settle(fiber *f)
{
    if (f->state == IDLE) return;
    hd_wait *wait = &f->record->wait;
    bool raise = chance(30), was_parked = f->state == PARKED;
    bool settled = raise ? settle_with_exception(wait, 7) : hd_wait_settle(wait, HD_WOKEN_BY_UNBLOCK);
    CHECK_EQ(was_parked, settled);
    if (!settled) return;
    f->exception = raise ? 7 : 0;
    model_ready(f, raise ? HD_WOKEN_BY_EXCEPTION : HD_WOKEN_BY_UNBLOCK);
    hd_reactor_wake_if_asleep(&reactor);
}

static void settle_somebody(void *unused)
{
    (void)unused;
    settle(&fibers[rnd(FIBERS)]);
}

static void write_somewhere(void *unused)
{
    (void)unused;
    sim_write(fds[rnd(FDS)], (int)rnd(2000));
    note_events();
}

/* As hooks/ closes an IO: raise in all who wait on it, take their interests off, release files, close; then the
 * number is used again at once. */
static void close_pair(int at)
{
    for (int side = at; side < at + 2; side++) {
        hd_map_node *node = hd_map_find(&ios, (hd_word)fds[side]), *next;
        for (; node; node = next) {
            hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, io_node);
            next = hd_map_find_next(&ios, node);
            fiber *f = fiber_of(interest->wait);
            if (settle_with_exception(interest->wait, 9)) {
                f->exception = 9;
                model_ready(f, HD_WOKEN_BY_EXCEPTION);
            }
            hd_interest_disarm(interest);
        }
        CHECK(!hd_map_find(&ios, (hd_word)fds[side]));
    }
    reactor.ops->release_files(reactor.backend);
    sim_close(fds[at]);
    CHECK_EQ(0, sim_read(fds[at + 1]) > 0 ? sim_read(fds[at + 1]) : 0); /* the end of the stream, at once */
    sim_close(fds[at + 1]);
    CHECK_EQ(0, sim_pair(&fds[at]));
}

/* -- the turn -------------------------------------------------------------------------------------------------- */

/* The nodes of the queue begin with those of the model; the first one after these. */
static hd_node *check_known(const hd_list *queue, const line *known)
{
    hd_node *node = hd_list_first(queue);
    for (int i = 0; i < known->length; i++, node = hd_list_after(queue, node)) {
        CHECK(node);
        CHECK_EQ(known->fibers[i], fiber_of(HD_CONTAINER_OF(node, hd_wait, ready_node)) - fibers);
    }
    return node;
}

static fiber *check_woken(const hd_wait *wait, hd_wake cause)
{
    fiber *f = fiber_of(wait);
    CHECK_EQ(PARKED, f->state);
    CHECK_EQ(cause, wait->wake);
    return f;
}

static void check_event(const hd_wait *wait)
{
    fiber *f = check_woken(wait, HD_WOKEN_BY_EVENT);
    CHECK(f->seen || faults.phantom_percent);
    short revents = 0;
    for (int i = 0; i < f->interests; i++) {
        CHECK_EQ(0, f->record->interests[i].revents & ~(f->record->interests[i].events | POLLIN | POLLOUT));
        revents |= f->record->interests[i].revents;
    }
    CHECK(revents);
    model_ready(f, HD_WOKEN_BY_EVENT);
}

static const fiber *check_timeout(const hd_wait *wait)
{
    fiber *f = check_woken(wait, HD_WOKEN_BY_TIMEOUT);
    CHECK_AT_LEAST(f->deadline_ns, reactor.now_ns);
    model_ready(f, HD_WOKEN_BY_TIMEOUT);
    return f;
}

/* The fibers that reap has woken: each for a true reason, behind the fibers that were ready before. */
static void check_reaped(void)
{
    hd_node *node = check_known(&reactor.ready, &ready);
    for (; node; node = hd_list_after(&reactor.ready, node))
        check_event(HD_CONTAINER_OF(node, hd_wait, ready_node));
    int64_t last_deadline_ns = INT64_MIN;
    node = check_known(&reactor.due, &due);
    for (; node; node = hd_list_after(&reactor.due, node)) {
        const fiber *f = check_timeout(HD_CONTAINER_OF(node, hd_wait, ready_node));
        CHECK_AT_LEAST(last_deadline_ns, f->deadline_ns); /* in order of deadlines */
        last_deadline_ns = f->deadline_ns;
    }
    CHECK(!check_known(&reactor.behind, &behind)); /* nobody is woken to stand there */
    CHECK_EQ(behind.length, reactor.behind_count);
    for (int i = 0; i < FIBERS; i++)
        if (fibers[i].state == PARKED) {
            CHECK_AT_LEAST(reactor.now_ns + 1, fibers[i].deadline_ns); /* a due timer is not forgotten */
            CHECK_EQ(HD_WAIT_PARKED, fibers[i].record->wait.state);
        }
}

/* A fiber whose event is there all the time is woken by the second turn that could have seen it, if that one came
 * later than the longest delay of a completion. */
static void check_nobody_is_forgotten(const bool stayed[FIBERS], int64_t turn_began_ns)
{
    for (int i = 0; i < FIBERS; i++) {
        if (fibers[i].state != PARKED || !stayed[i] || !event_stays[i]) continue;
        if (!looked_ns[i])
            looked_ns[i] = sim_now();
        else
            CHECK_AT_LEAST(turn_began_ns + 1, looked_ns[i] + faults.delay_ns_max);
    }
}

static void take_turn(int64_t limit_ns)
{
    bool stayed[FIBERS];
    memcpy(stayed, event_stays, sizeof(stayed));
    int64_t began_ns = sim_now(), timeout_ns = hd_reactor_timeout(&reactor);
    if (can_run()) CHECK_EQ(0, timeout_ns);
    if (timeout_ns > limit_ns) timeout_ns = limit_ns;
    reactor.asleep = timeout_ns > 0;
    hd_reactor_poll_nogvl(&reactor, timeout_ns);
    reactor.asleep = false;
    note_events();
    hd_reactor_reap(&reactor);
    check_reaped();
    check_nobody_is_forgotten(stayed, began_ns);
}

/* The fiber computes until its time slice is over. Then those run that are ready, and it stands behind all others. */
static void compute(fiber *f)
{
    sim_advance((int64_t)rnd(SLICE_NS_MAX));
    take_turn(0);
    if (!can_run()) return;
    f->record = calloc(1, sizeof(*f->record));
    CHECK(f->record);
    f->place = HD_BEHIND;
    f->deadline_ns = HD_NO_DEADLINE;
    hd_wait_begin_ready(&f->record->wait, &reactor, word_of(f), HD_BEHIND);
    f->record->wait.sliced = true;
    model_ready(f, HD_WOKEN_BY_EVENT);
    slices++;
}

static void run_one(void)
{
    hd_wait *wait = hd_next_ready(&reactor);
    int expected = model_next();
    CHECK_EQ(expected < 0, !wait);
    if (!wait) return;
    fiber *f = fiber_of(wait);
    CHECK_EQ(expected, f - fibers);
    CHECK(wait == &f->record->wait);
    CHECK_EQ(READY, f->state);
    CHECK_EQ(f->cause, wait->wake);
    CHECK_EQ(f->exception, wait->exception);
    if (f->place != HD_IN_FRONT) turn_began_ns = reactor.now_ns;
    CHECK_EQ(turn_began_ns, reactor.turn.began_ns);
    wakes[wait->wake]++;
    note((uint64_t)(f - fibers) << 8 | wait->wake);
    note((uint64_t)sim_now());
    if (chance(20)) CHECK(!hd_wait_settle(wait, HD_WOKEN_BY_UNBLOCK)); /* a late one, before it cleans up */
    bool computes = !finishing && chance(f->place == HD_BEHIND ? 80 : 10);
    end_wait(f);
    if (computes) compute(f);
}

static void step(void)
{
    fiber *f = &fibers[rnd(FIBERS)];
    switch (rnd(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (f->state == IDLE) park_fiber(f);
        break;
    case 4:
        settle(f);
        break;
    case 5:
        write_somewhere(NULL);
        break;
    case 6:
        sim_read(fds[rnd(FDS)]);
        break;
    case 7:
        if (chance(5)) close_pair((int)rnd(PAIRS) * 2);
        if (chance(10) && f->state != IDLE) { /* a raise or kill at the switch */
            model_remove(f);
            end_wait(f);
        }
        break;
    case 8:
        sim_at(sim_now() + (int64_t)rnd(2 * HD_NS_PER_MS), chance(50) ? settle_somebody : write_somewhere, NULL);
        break;
    case 9:
        sim_advance((int64_t)rnd(chance(90) ? 20000 : 5 * HD_NS_PER_MS));
        break;
    default:
        take_turn(5 * HD_NS_PER_MS);
        for (uint64_t batch = rnd(FIBERS); batch > 0 && can_run(); batch--) run_one();
        break;
    }
    note_events();
    check_links();
}

/* Only what has no other way out is unblocked; all the rest must come by itself. */
static void finish_all(void)
{
    int64_t end_ns = sim_now() + 10 * HD_NS_PER_SECOND;
    finishing = true;
    for (;;) {
        int waiting = 0;
        for (int i = 0; i < FIBERS; i++) {
            if (fibers[i].state == PARKED && fibers[i].deadline_ns == HD_NO_DEADLINE && !event_there(&fibers[i]))
                settle(&fibers[i]);
            waiting += fibers[i].state != IDLE;
        }
        while (can_run()) run_one();
        if (!waiting) break;
        if (sim_now() > end_ns) FAIL("%d fibers are never woken", waiting);
        take_turn(HD_NS_PER_MS);
        sim_advance(1);
    }
    while (sim_pending()) sim_advance(HD_NS_PER_MS);
}

static sim_faults random_faults(void)
{
    return (sim_faults){
        .spurious_percent = (unsigned)(chance(50) ? rnd(50) : 0),
        .duplicate_percent = (unsigned)(chance(50) ? rnd(80) : 0),
        .phantom_percent = (unsigned)(chance(30) ? rnd(20) : 0),
        .extra_bits_percent = (unsigned)(chance(50) ? rnd(80) : 0),
        .arm_error_percent = (unsigned)(chance(30) ? rnd(20) : 0),
        .files_pollable = chance(50),
        .shuffle = chance(70),
        .delay_ns_max = chance(70) ? (int64_t)rnd(3 * HD_NS_PER_MS) : 0,
        .overshoot_ns_max = chance(50) ? (int64_t)rnd(HD_NS_PER_MS) : 0,
    };
}

static uint64_t run_once(uint64_t seed)
{
    static setting sim;
    test_random_state = seed;
    trace = UINT64_C(0xCBF29CE484222325);
    memset(fibers, 0, sizeof(fibers));
    memset(event_stays, 0, sizeof(event_stays));
    memset(looked_ns, 0, sizeof(looked_ns));
    ready.length = due.length = behind.length = 0;
    due_was_last = behind_was_last = woken_before = finishing = false;
    faults = random_faults();
    sim = (setting){.name = "sim", .ops = &hd_backend_sim, .world = &sim_world, .faults = faults};
    open_setting(&sim);
    turn_began_ns = reactor.now_ns;
    for (int i = 0; i < FDS; i += 2) CHECK_EQ(0, sim_pair(&fds[i]));
    for (int i = 0; i < STEPS; i++) step();
    finish_all();
    check_idle();
    reactor.ops->release_files(reactor.backend);
    for (int i = 0; i < FDS; i++) sim_close(fds[i]);
    note(reactor.polls);
    note((uint64_t)sim_now());
    close_setting();
    return trace;
}

TEST(random_runs)
{
    enum { RUNS = 60 };
    for (int i = 0; i < RUNS; i++) {
        uint64_t seed = rnd64(), next = test_random_state;
        run_once(seed);
        test_random_state = next;
    }
    for (int cause = HD_WOKEN_BY_EVENT; cause <= HD_WOKEN_BY_EXCEPTION; cause++) CHECK_AT_LEAST(100, wakes[cause]);
    CHECK_AT_LEAST(1000, slices);
    printf("note: woken %d times by an event, %d by a timeout, %d by unblock, %d by an exception; %d time slices\n",
           wakes[HD_WOKEN_BY_EVENT], wakes[HD_WOKEN_BY_TIMEOUT], wakes[HD_WOKEN_BY_UNBLOCK],
           wakes[HD_WOKEN_BY_EXCEPTION], slices);
}

TEST(the_same_seed_gives_the_same_run)
{
    for (int i = 0; i < 3; i++) {
        uint64_t seed = rnd64(), first = run_once(seed);
        CHECK(run_once(seed) == first);
        CHECK(run_once(seed + 1) != first);
    }
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(random_runs);
    RUN(the_same_seed_gives_the_same_run);
    return test_finish();
}
