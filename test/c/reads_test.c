/* Interests that want bytes: every byte arrives once and in order, whether it came with the event, was read while
 * the interest was taken back, or is read by the waiter itself, as it must where a backend only reports readiness. */
#include "harness.h"

enum { WANTED = 64, TAKEN_MAX = 4096 };

/* A reader and the bytes that it has got. */
typedef struct {
    waiter waiter;
    int fd;
    unsigned char next; /* the byte that comes next */
    int total, answered;
} reader;

static bool backend_reads(void)
{
    return now_on->ops->release_bytes && !now_on->faults.no_buffer_percent;
}

static void park_reading_for(reader *reader, size_t wanted, int64_t timeout_ns)
{
    reader->waiter.interest.size = wanted;
    CHECK_EQ(0, park_given(&reader->waiter, reader->fd, POLLIN, timeout_ns));
}

static void park_reading(reader *reader)
{
    park_reading_for(reader, WANTED, HD_NO_DEADLINE);
}

static void get(reader *reader, const char *bytes, int size)
{
    for (int i = 0; i < size; i++) CHECK_EQ(reader->next++, (unsigned char)bytes[i]);
    reader->total += size;
}

/* Ends the wait, and keeps what has come with it. */
static void take_back(reader *reader)
{
    hd_interest *interest = &reader->waiter.interest;
    hd_interest_disarm(interest);
    if (interest->answered && interest->result > 0) {
        CHECK(interest->result <= (ssize_t)interest->size);
        get(reader, interest->bytes, (int)interest->result);
        reader->answered++;
    }
    unpark(&reader->waiter);
}

/* Reads what is there by itself. False at the end. */
static bool take_rest(reader *reader)
{
    char bytes[TAKEN_MAX];
    int size;
    while ((size = world->take(reader->fd, bytes, sizeof(bytes))) > 0) get(reader, bytes, size);
    return size < 0;
}

static void await_bytes(reader *reader)
{
    await_waiter(&reader->waiter);
    CHECK_EQ(HD_WOKEN_BY_EVENT, reader->waiter.wait.wake);
    take_back(reader);
}

static void open_reader(reader *reader, int *peer)
{
    int fds[2];
    memset(reader, 0, sizeof(*reader));
    CHECK_EQ(0, world->pair(fds));
    reader->fd = fds[0];
    *peer = fds[1];
}

static void close_reader(reader *reader, int peer)
{
    now_on->ops->release_files(reactor.backend);
    world->close(reader->fd), world->close(peer);
}

CONTRACT(bytes_come_with_the_event)
{
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    for (int late = 0; late < 2; late++) {
        if (!late) world->write(peer, 5);
        park_reading(&reader);
        if (late) check_quiet(), world->write(peer, 5);
        await_bytes(&reader);
        if (backend_reads()) CHECK_EQ(late + 1, reader.answered);
        CHECK(take_rest(&reader));
        CHECK_EQ(5 * (late + 1), reader.total);
    }
    close_reader(&reader, peer);
}

CONTRACT(no_more_than_wanted)
{
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    park_reading(&reader);
    world->write(peer, WANTED + 10);
    await_bytes(&reader);
    if (backend_reads()) CHECK_EQ(WANTED, reader.total);
    CHECK(take_rest(&reader));
    CHECK_EQ(WANTED + 10, reader.total);
    close_reader(&reader, peer);
}

CONTRACT(the_end)
{
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    park_reading(&reader);
    check_quiet();
    world->close(peer);
    await_bytes(&reader);
    CHECK_EQ(0, reader.total);
    if (backend_reads()) CHECK(reader.waiter.interest.answered && reader.waiter.interest.result == 0);
    CHECK(!take_rest(&reader));
    now_on->ops->release_files(reactor.backend);
    world->close(reader.fd);
}

CONTRACT(taken_back_before_bytes_come)
{
    reader reader;
    int peer;
    for (int submitted = 0; submitted < 2; submitted++) {
        open_reader(&reader, &peer);
        park_reading(&reader);
        if (submitted) check_quiet();
        take_back(&reader);
        CHECK(!reader.waiter.interest.answered);
        world->write(peer, 7);
        check_quiet();
        CHECK(take_rest(&reader));
        CHECK_EQ(7, reader.total);
        close_reader(&reader, peer);
    }
}

/* In each place between their arrival and the wake. */
CONTRACT(taken_back_when_bytes_have_come)
{
    enum { BEFORE_THE_SUBMISSION, BEFORE_THE_POLL, BEFORE_THE_REAP, BEFORE_THE_TURN, PLACES };
    for (int place = 0; place < PLACES; place++) {
        reader reader;
        int peer;
        open_reader(&reader, &peer);
        park_reading(&reader);
        if (place != BEFORE_THE_SUBMISSION) check_quiet();
        world->write(peer, 7);
        if (place >= BEFORE_THE_REAP) hd_reactor_poll_nogvl(&reactor, 10 * HD_NS_PER_MS);
        if (place >= BEFORE_THE_TURN) hd_reactor_reap(&reactor);
        take_back(&reader);
        check_quiet();
        CHECK(take_rest(&reader));
        CHECK_EQ(7, reader.total);
        close_reader(&reader, peer);
    }
}

/* Only one of them takes a byte; what a backend reads for one is not there for the other. */
CONTRACT(one_reader_after_the_other)
{
    reader first, second;
    int peer;
    open_reader(&first, &peer);
    second = first;
    park_reading(&first);
    park_reading(&second);
    check_quiet();
    world->write(peer, 7);
    turn(HD_NS_PER_MS);
    take_back(&first);
    take_back(&second);
    CHECK_EQ(0, first.total && second.total);
    second.next = (unsigned char)(first.total + second.total);
    CHECK(take_rest(&second));
    CHECK_EQ(7, first.total + second.total);
    close_reader(&first, peer);
}

/* More than the queue of the ring takes, and more than it has buffers: they get readiness, and read. */
CONTRACT(hundreds_of_readers)
{
    enum { READERS = 400, ROUNDS = 3 };
    static reader readers[READERS];
    static int peers[READERS];
    int answered = 0;
    for (int i = 0; i < READERS; i++) open_reader(&readers[i], &peers[i]);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < READERS; i++) park_reading(&readers[i]);
        check_quiet();
        for (int i = 0; i < READERS; i++) world->write(peers[i], 300);
        for (int i = 0; i < READERS; i++) await_bytes(&readers[i]);
        for (int i = 0; i < READERS; i++) CHECK(take_rest(&readers[i]));
        for (int i = 0; i < READERS; i++) CHECK_EQ(300 * round, readers[i].total);
    }
    for (int i = 0; i < READERS; i++) answered += readers[i].answered;
    if (backend_reads()) CHECK_AT_LEAST(16 * ROUNDS, answered); /* (the ring has its buffers again) */
    for (int i = 0; i < READERS; i++) close_reader(&readers[i], peers[i]);
}

/* More requests than the queue of the ring takes are taken back at once, some of them with bytes. */
CONTRACT(hundreds_are_taken_back)
{
    enum { READERS = 400 };
    static reader readers[READERS];
    static int peers[READERS];
    for (int i = 0; i < READERS; i++) open_reader(&readers[i], &peers[i]);
    for (int i = 0; i < READERS; i++) park_reading(&readers[i]);
    for (int i = 0; i < READERS; i += 2) world->write(peers[i], 9);
    for (int i = 0; i < READERS; i++) take_back(&readers[i]);
    CHECK_EQ(0, reactor.received); /* some bytes have come in the call that takes the read back */
    for (int i = 0; i < READERS; i++) {
        world->write(peers[i], 9);
        CHECK(take_rest(&readers[i]));
        CHECK_EQ(i % 2 ? 9 : 18, readers[i].total);
        close_reader(&readers[i], peers[i]);
    }
}

/* Descriptors that are no sockets get readiness. */
CONTRACT(a_pipe)
{
    if (!world->real) return;
    waiter waiter = {.interest = {.size = WANTED}};
    int fds[2];
    CHECK_EQ(0, pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    CHECK_EQ(0, park_given(&waiter, fds[0], POLLIN, HD_NO_DEADLINE));
    check_quiet();
    CHECK_EQ(5, write(fds[1], "bytes", 5));
    CHECK_EQ(POLLIN, await_event(&waiter));
    CHECK(!waiter.interest.answered);
    close(fds[0]), close(fds[1]);
}

/* The kernel tells an error once: whoever reads it must hand it on. */
CONTRACT(an_error_is_told)
{
    if (!world->real) return;
    reader reader;
    int peer;
    char byte;
    open_reader(&reader, &peer);
    world->write(reader.fd, 1);
    park_reading(&reader);
    check_quiet();
    world->close(peer); /* with an unread byte: a reset */
    await_waiter(&reader.waiter);
    const hd_interest *interest = &reader.waiter.interest;
    if (interest->answered)
        CHECK_EQ(-ECONNRESET, interest->result);
    else
        CHECK(recv(reader.fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET);
    unpark(&reader.waiter);
    world->close(reader.fd);
}

CONTRACT(a_closed_number)
{
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    world->close(reader.fd);
    reader.waiter.interest.size = WANTED;
    int error = park_given(&reader.waiter, reader.fd, POLLIN, HD_NO_DEADLINE);
    if (error) {
        CHECK_EQ(-EBADF, error);
    } else {
        await_waiter(&reader.waiter);
        CHECK(!reader.waiter.interest.answered);
        unpark(&reader.waiter);
    }
    world->close(peer);
}

/* Its thread goes on without asking for an answer, as when nothing could end a fiber. */
CONTRACT(a_backend_is_closed_while_it_reads)
{
    if (!world->real) return;
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    park_reading(&reader);
    check_quiet();
    hd_reactor_close(&reactor);
    world->write(peer, 7);
    take_back(&reader);
    CHECK(!reader.waiter.interest.answered);
    world->close(reader.fd), world->close(peer);
    CHECK_EQ(0, hd_reactor_open(&reactor, now_on->ops, now_on->pinned));
}

static reader of_parent;
static int peer_of_parent;

static void forget_in_child(void)
{
    hd_map_forget(&ios);
    hd_reactor_forget(&reactor, hd_fork_generation);
    take_back(&of_parent);
    CHECK_EQ(0, of_parent.answered);
}

CONTRACT(the_child_of_a_fork_has_no_part_in_it)
{
    if (!world->real) return;
    for (int arrived = 0; arrived < 2; arrived++) {
        open_reader(&of_parent, &peer_of_parent);
        park_reading(&of_parent);
        check_quiet();
        if (arrived) {
            world->write(peer_of_parent, 7);
            hd_reactor_poll_nogvl(&reactor, 10 * HD_NS_PER_MS);
        }
        in_child(forget_in_child);
        if (arrived)
            hd_reactor_reap(&reactor);
        else world->write(peer_of_parent, 7);
        await_bytes(&of_parent);
        CHECK(take_rest(&of_parent));
        CHECK_EQ(7, of_parent.total);
        close_reader(&of_parent, peer_of_parent);
    }
}

/* After a read that was taken back the next run may have the backend. */
CONTRACT(it_rests_afterwards)
{
    reader reader;
    int peer;
    open_reader(&reader, &peer);
    for (int round = 0; round < 100; round++) {
        park_reading(&reader);
        if (round % 2) turn(0);
        if (round % 3) world->write(peer, 1);
        take_back(&reader);
        CHECK(now_on->ops->rest(reactor.backend));
    }
    CHECK(take_rest(&reader));
    CHECK_EQ(66, reader.total);
    close_reader(&reader, peer);
}

/* Readers get exceptions, time out, read by themselves and wait again, at every point of a read. */
CONTRACT(random_strikes)
{
    enum { READERS = 30, STEPS = 6000 };
    static reader readers[READERS];
    static int peers[READERS], sent[READERS];
    static bool parked[READERS];
    int answered = 0, raised = 0;
    bool polled = false;
    memset(sent, 0, sizeof(sent));
    memset(parked, 0, sizeof(parked));
    for (int i = 0; i < READERS; i++) open_reader(&readers[i], &peers[i]);
    for (int steps = 0; steps < STEPS; steps++) {
        int i = (int)rnd(READERS), size = 1 + (int)rnd(chance(80) ? 20 : 500);
        switch (rnd(7)) {
        case 0:
        case 1:
            if (!parked[i])
                park_reading_for(&readers[i], 1 + rnd(chance(50) ? 10 : 400),
                                 chance(80) ? HD_NO_DEADLINE : (int64_t)rnd(HD_NS_PER_MS));
            parked[i] = true;
            break;
        case 2:
        case 3:
            if (sent[i] - readers[i].total + size > 2000) break;
            world->write(peers[i], size);
            sent[i] += size;
            break;
        case 4: /* an exception */
            if (!parked[i] || chance(50)) break;
            if (chance(30)) settle_with_exception(&readers[i].waiter.wait, 7);
            take_back(&readers[i]);
            parked[i] = false;
            raised++;
            break;
        case 5:
            if (!parked[i]) CHECK(take_rest(&readers[i]));
            break;
        case 6:
            if (polled) hd_reactor_reap(&reactor);
            polled = chance(50);
            if (polled)
                hd_reactor_poll_nogvl(&reactor, chance(50) ? 0 : 10000); /* reaped later, perhaps after an exception */
            else
                turn(chance(80) ? 0 : 10000);
            run_ready();
            for (int woken = 0; woken < READERS; woken++) {
                if (!parked[woken] || !readers[woken].waiter.woken) continue;
                take_back(&readers[woken]);
                parked[woken] = false;
            }
        }
    }
    if (polled) hd_reactor_reap(&reactor);
    for (int i = 0; i < READERS; i++) {
        if (parked[i]) take_back(&readers[i]);
        CHECK(take_rest(&readers[i]));
        CHECK_EQ(sent[i], readers[i].total);
        answered += readers[i].answered;
        close_reader(&readers[i], peers[i]);
    }
    CHECK_AT_LEAST(20, raised);
    if (now_on->ops->release_bytes) CHECK_AT_LEAST(20, answered);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(bytes_come_with_the_event);
    RUN(no_more_than_wanted);
    RUN(the_end);
    RUN(taken_back_before_bytes_come);
    RUN(taken_back_when_bytes_have_come);
    RUN(one_reader_after_the_other);
    RUN(hundreds_of_readers);
    RUN(hundreds_are_taken_back);
    RUN(a_pipe);
    RUN(an_error_is_told);
    RUN(a_closed_number);
    RUN(a_backend_is_closed_while_it_reads);
    RUN(the_child_of_a_fork_has_no_part_in_it);
    RUN(it_rests_afterwards);
    RUN(random_strikes);
    return test_finish();
}
