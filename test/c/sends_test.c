/* Interests that have bytes to send: every byte goes out once and in order, and the bytes that went out are counted,
 * whether the event gave their number, or the interest was taken back, or the waiter sent by itself. */
#include <signal.h>

#include "harness.h"

enum { SIZE = 300, SIZE_MAX_SENT = 4096 };

/* A writer, and how far it and its peer are. */
typedef struct {
    waiter waiter;
    int fd, peer;
    char bytes[SIZE_MAX_SENT];
    unsigned char next; /* the byte that is sent next */
    unsigned char due;  /* the byte that the peer gets next */
    int sent, got, told; /* (told: of how many sends the backend has told) */
} writer;

static void open_writer(writer *writer)
{
    int fds[2];
    memset(writer, 0, sizeof(*writer));
    CHECK_EQ(0, world->pair(fds));
    writer->fd = fds[0];
    writer->peer = fds[1];
}

static void close_writer(writer *writer)
{
    now_on->ops->release_files(reactor.backend);
    world->close(writer->fd), world->close(writer->peer);
}

/* The peer takes what is there. */
static void take_all(writer *writer)
{
    char bytes[SIZE_MAX_SENT];
    int size;
    while ((size = world->take(writer->peer, bytes, sizeof(bytes))) > 0) {
        for (int i = 0; i < size; i++) CHECK_EQ(writer->due++, (unsigned char)bytes[i]);
        writer->got += size;
    }
}

static bool can_send(size_t size)
{
    return now_on->ops->can_send && now_on->ops->can_send(reactor.backend, size);
}

static bool always_sends(void)
{
    return now_on->ops->can_send && !now_on->faults.no_buffer_percent;
}

/* Parks with this number of bytes to send, or for room only where the backend does not send. */
static void park_sending(writer *writer, size_t size, int64_t timeout_ns)
{
    for (size_t i = 0; i < size; i++) writer->bytes[i] = (char)(writer->next + i);
    writer->waiter.interest = (hd_interest){0};
    if (can_send(size)) {
        writer->waiter.interest.size = size;
        writer->waiter.interest.bytes_to_send = writer->bytes;
    }
    CHECK_EQ(0, park_given(&writer->waiter, writer->fd, POLLOUT, timeout_ns));
    memset(writer->bytes, 0, sizeof(writer->bytes)); /* (the backend has a copy) */
}

/* Ends the wait, and counts what has gone out. */
static void take_back(writer *writer)
{
    hd_interest *interest = &writer->waiter.interest;
    hd_interest_disarm(interest);
    if (interest->answered && interest->result > 0) {
        CHECK(interest->result <= (ssize_t)interest->size && !interest->bytes);
        writer->next += (unsigned char)interest->result;
        writer->sent += (int)interest->result;
    }
    writer->told += interest->answered;
    unpark(&writer->waiter);
}

static void await_sent(writer *writer)
{
    await_waiter(&writer->waiter);
    CHECK_EQ(HD_WOKEN_BY_EVENT, writer->waiter.wait.wake);
    take_back(writer);
}

static void check_sent(writer *writer)
{
    take_all(writer);
    CHECK_EQ(writer->sent, writer->got);
}

/* Nothing more fits; how many bytes. */
static int fill(writer *writer)
{
    int total = 0;
    if (!world->real) {
        while (world->ready(writer->fd) & POLLOUT) world->write(writer->fd, 1), total++;
    } else {
        for (char byte = (char)writer->next; send(writer->fd, &byte, 1, MSG_DONTWAIT) == 1; byte++) total++;
    }
    writer->next += (unsigned char)total;
    writer->sent += total;
    return total;
}

CONTRACT(it_goes_out_with_the_next_turn)
{
    writer writer;
    open_writer(&writer);
    for (int round = 1; round <= 3; round++) {
        park_sending(&writer, SIZE, HD_NO_DEADLINE);
        await_sent(&writer);
        if (always_sends()) {
            CHECK_EQ(round, writer.told);
            CHECK_EQ(SIZE * round, writer.sent);
        }
        check_sent(&writer);
    }
    close_writer(&writer);
}

CONTRACT(it_waits_for_room)
{
    writer writer;
    open_writer(&writer);
    fill(&writer);
    park_sending(&writer, SIZE, HD_NO_DEADLINE);
    check_quiet();
    take_all(&writer);
    await_sent(&writer);
    if (always_sends()) CHECK_EQ(1, writer.told);
    check_sent(&writer);
    close_writer(&writer);
}

CONTRACT(taken_back_while_it_waits_for_room)
{
    writer writer;
    for (int submitted = 0; submitted < 2; submitted++) {
        open_writer(&writer);
        fill(&writer);
        park_sending(&writer, SIZE, HD_NO_DEADLINE);
        if (submitted) check_quiet();
        take_back(&writer);
        CHECK(!writer.waiter.interest.answered);
        check_sent(&writer);
        check_quiet();
        check_sent(&writer);
        close_writer(&writer);
    }
}

/* In each place between the wait and the wake. */
CONTRACT(what_went_out_is_counted)
{
    enum { BEFORE_THE_POLL, BEFORE_THE_REAP, BEFORE_THE_TURN, PLACES };
    for (int place = 0; place < PLACES; place++) {
        writer writer;
        open_writer(&writer);
        park_sending(&writer, SIZE, HD_NO_DEADLINE);
        if (place >= BEFORE_THE_REAP) hd_reactor_poll_nogvl(&reactor, 0);
        if (place >= BEFORE_THE_TURN) hd_reactor_reap(&reactor);
        if (place == BEFORE_THE_TURN) settle_with_exception(&writer.waiter.wait, 7);
        take_back(&writer);
        check_sent(&writer);
        check_quiet();
        check_sent(&writer);
        close_writer(&writer);
    }
}

CONTRACT(the_peer_is_gone)
{
    writer writer;
    open_writer(&writer);
    world->close(writer.peer);
    park_sending(&writer, SIZE, HD_NO_DEADLINE);
    await_sent(&writer);
    if (always_sends()) CHECK_EQ(-EPIPE, writer.waiter.interest.result);
    CHECK_EQ(0, writer.sent);
    now_on->ops->release_files(reactor.backend);
    world->close(writer.fd);
}

/* More than the queue of the ring takes, and more than it has memory for. */
CONTRACT(hundreds_of_writers)
{
    enum { WRITERS = 400, ROUNDS = 3 };
    static writer writers[WRITERS];
    int told = 0;
    for (int i = 0; i < WRITERS; i++) open_writer(&writers[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WRITERS; i++) park_sending(&writers[i], SIZE, HD_NO_DEADLINE);
        for (int i = 0; i < WRITERS; i++) await_sent(&writers[i]);
        for (int i = 0; i < WRITERS; i++) check_sent(&writers[i]);
    }
    for (int i = 0; i < WRITERS; i++) told += writers[i].told;
    if (always_sends()) CHECK_AT_LEAST(64 * ROUNDS, told);
    for (int i = 0; i < WRITERS; i++) park_sending(&writers[i], SIZE, HD_NO_DEADLINE);
    for (int i = 0; i < WRITERS; i++) take_back(&writers[i]);
    for (int i = 0; i < WRITERS; i++) check_sent(&writers[i]);
    for (int i = 0; i < WRITERS; i++) close_writer(&writers[i]);
}

CONTRACT(a_closed_number)
{
    writer writer;
    open_writer(&writer);
    world->close(writer.fd);
    writer.waiter.interest = (hd_interest){.size = SIZE, .bytes_to_send = can_send(SIZE) ? writer.bytes : NULL};
    int error = park_given(&writer.waiter, writer.fd, POLLOUT, HD_NO_DEADLINE);
    if (error) {
        CHECK_EQ(-EBADF, error);
    } else {
        await_waiter(&writer.waiter);
        CHECK(!writer.waiter.interest.answered);
        unpark(&writer.waiter);
    }
    world->close(writer.peer);
}

CONTRACT(a_backend_is_closed_while_it_sends)
{
    if (!world->real) return;
    writer writer;
    open_writer(&writer);
    fill(&writer);
    park_sending(&writer, SIZE, HD_NO_DEADLINE);
    check_quiet();
    hd_reactor_close(&reactor);
    take_back(&writer);
    CHECK(!writer.waiter.interest.answered);
    world->close(writer.fd), world->close(writer.peer);
    CHECK_EQ(0, hd_reactor_open(&reactor, now_on->ops, now_on->pinned));
}

static writer of_parent;

static void forget_in_child(void)
{
    hd_map_forget(&ios);
    hd_reactor_forget(&reactor, hd_fork_generation);
    take_back(&of_parent);
    CHECK_EQ(0, of_parent.told);
}

CONTRACT(the_child_of_a_fork_has_no_part_in_it)
{
    if (!world->real) return;
    for (int submitted = 0; submitted < 2; submitted++) {
        open_writer(&of_parent);
        if (submitted) fill(&of_parent);
        park_sending(&of_parent, SIZE, HD_NO_DEADLINE);
        if (submitted) check_quiet();
        in_child(forget_in_child);
        take_all(&of_parent);
        await_sent(&of_parent);
        check_sent(&of_parent);
        close_writer(&of_parent);
    }
}

/* After a send that was taken back the next run may have the backend. */
CONTRACT(it_rests_afterwards)
{
    writer writer;
    open_writer(&writer);
    for (int round = 0; round < 100; round++) {
        park_sending(&writer, 20, HD_NO_DEADLINE);
        if (round % 2) turn(0);
        take_back(&writer);
        CHECK(now_on->ops->rest(reactor.backend));
        check_sent(&writer);
    }
    close_writer(&writer);
}

/* Writers get exceptions, time out and wait again, at every point of a send, while their peers read now and then. */
CONTRACT(random_strikes)
{
    enum { WRITERS = 30, STEPS = 6000 };
    static writer writers[WRITERS];
    static bool parked[WRITERS];
    int told = 0;
    bool polled = false;
    memset(parked, 0, sizeof(parked));
    for (int i = 0; i < WRITERS; i++) open_writer(&writers[i]);
    for (int steps = 0; steps < STEPS; steps++) {
        int i = (int)rnd(WRITERS);
        switch (rnd(6)) {
        case 0:
        case 1:
            if (!parked[i])
                park_sending(&writers[i], 1 + rnd(chance(50) ? 10 : SIZE_MAX_SENT - 1),
                             chance(80) ? HD_NO_DEADLINE : (int64_t)rnd(HD_NS_PER_MS));
            parked[i] = true;
            break;
        case 2:
            take_all(&writers[i]);
            break;
        case 3: /* an exception */
            if (!parked[i] || chance(50)) break;
            if (chance(30)) settle_with_exception(&writers[i].waiter.wait, 7);
            take_back(&writers[i]);
            parked[i] = false;
            break;
        case 4:
            if (!parked[i] && chance(10)) fill(&writers[i]);
            break;
        case 5:
            if (polled) hd_reactor_reap(&reactor);
            polled = chance(50);
            if (polled)
                hd_reactor_poll_nogvl(&reactor, chance(50) ? 0 : 10000); /* reaped later, perhaps after an exception */
            else
                turn(chance(80) ? 0 : 10000);
            run_ready();
            for (int woken = 0; woken < WRITERS; woken++) {
                if (!parked[woken] || !writers[woken].waiter.woken) continue;
                take_back(&writers[woken]);
                parked[woken] = false;
            }
        }
    }
    if (polled) hd_reactor_reap(&reactor);
    for (int i = 0; i < WRITERS; i++) {
        if (parked[i]) take_back(&writers[i]);
        check_sent(&writers[i]);
        told += writers[i].told;
        close_writer(&writers[i]);
    }
    if (now_on->ops->can_send) CHECK_AT_LEAST(20, told);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    test_start(argc, argv);
    RUN(it_goes_out_with_the_next_turn);
    RUN(it_waits_for_room);
    RUN(taken_back_while_it_waits_for_room);
    RUN(what_went_out_is_counted);
    RUN(the_peer_is_gone);
    RUN(hundreds_of_writers);
    RUN(a_closed_number);
    RUN(a_backend_is_closed_while_it_sends);
    RUN(the_child_of_a_fork_has_no_part_in_it);
    RUN(it_rests_afterwards);
    RUN(random_strikes);
    return test_finish();
}
