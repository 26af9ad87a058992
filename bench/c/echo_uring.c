/*
 * TCP echo without Ruby on io_uring, the bound for the row "echo": CONNECTIONS connections over the loopback device,
 * client and server in one thread and one ring, messages of MESSAGE bytes. Every answer is compared with what was sent.
 *
 * Each descriptor has one multishot receive for its whole life, which takes its memory from a ring of buffers. The
 * answers of a turn are submitted with the call that waits for the next ones, so a turn is one system call. A buffer
 * goes back to the kernel when the bytes in it were sent.
 *
 * usage: echo_uring ROUND_TRIPS WARM_UP_ROUND_TRIPS
 * Prints one line of JSON, as bench/child.rb does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 20, MESSAGE = 512, ENTRIES = 256, COMPLETIONS = 1024, BUFFERS = 256, GROUP = 0 };

/* What a request is for is in its user data: a number in the lower half, and one of these above. */
enum { RECEIVED = 1, SENT = 2, CLIENT_SENT = 3 };

/* One end of a connection. A client counts its round trips; a server has left = -1 and echoes until end of file. */
struct end {
    int fd;
    long left;
};

static struct {
    int fd;
    unsigned *sq_tail, *sq_mask, *cq_head, *cq_tail, *cq_mask;
    unsigned to_submit;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
} ring;

static struct {
    struct io_uring_buf_ring *ring;
    char (*memory)[MESSAGE];
    uint16_t tail;
} buffers;

static char message[MESSAGE];
static struct end ends[2 * CONNECTIONS];

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static double
seconds(clockid_t clock)
{
    struct timespec ts;
    if (clock_gettime(clock, &ts)) fail("clock_gettime");
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* -- the ring ------------------------------------------------------------------------------------------------- */

static void *
map(size_t size, off_t offset)
{
    int flags = offset < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, offset < 0 ? -1 : ring.fd, offset < 0 ? 0 : offset);
    if (memory == MAP_FAILED) fail("mmap");
    return memory;
}

static void
open_ring(void)
{
    struct io_uring_params params = { .cq_entries = COMPLETIONS,
                                      .flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
                                               IORING_SETUP_DEFER_TASKRUN };
    ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
    if (ring.fd < 0) fail("io_uring_setup");
    size_t sq_size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *memory = map(sq_size > cq_size ? sq_size : cq_size, IORING_OFF_SQ_RING);
    ring.sq_tail = (unsigned *)(memory + params.sq_off.tail);
    ring.sq_mask = (unsigned *)(memory + params.sq_off.ring_mask);
    ring.cq_head = (unsigned *)(memory + params.cq_off.head);
    ring.cq_tail = (unsigned *)(memory + params.cq_off.tail);
    ring.cq_mask = (unsigned *)(memory + params.cq_off.ring_mask);
    ring.cqes = (struct io_uring_cqe *)(memory + params.cq_off.cqes);
    ring.sqes = map(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    unsigned *array = (unsigned *)(memory + params.sq_off.array);
    for (unsigned i = 0; i < params.sq_entries; i++) array[i] = i;
}

static void
offer(unsigned number)
{
    struct io_uring_buf *buffer = &buffers.ring->bufs[buffers.tail & (BUFFERS - 1)];
    buffer->addr = (uintptr_t)buffers.memory[number];
    buffer->len = MESSAGE;
    buffer->bid = (uint16_t)number;
    __atomic_store_n(&buffers.ring->tail, ++buffers.tail, __ATOMIC_RELEASE);
}

static void
open_buffers(void)
{
    buffers.ring = map(BUFFERS * sizeof(struct io_uring_buf), -1);
    buffers.memory = map((size_t)BUFFERS * MESSAGE, -1);
    struct io_uring_buf_reg given = { .ring_addr = (uintptr_t)buffers.ring, .ring_entries = BUFFERS, .bgid = GROUP };
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &given, 1) < 0) fail("io_uring_register");
    for (unsigned i = 0; i < BUFFERS; i++) offer(i);
}

/* Each descriptor has at most one request that was not submitted, so the queue has room for all. */
static struct io_uring_sqe *
request(int opcode, int fd, unsigned what, unsigned number)
{
    unsigned tail = *ring.sq_tail;
    struct io_uring_sqe *sqe = &ring.sqes[tail & *ring.sq_mask];
    *sqe = (struct io_uring_sqe){ .opcode = (uint8_t)opcode, .fd = fd, .user_data = (uint64_t)what << 32 | number };
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
    ring.to_submit++;
    return sqe;
}

static void
enter(void)
{
    long submitted = syscall(SYS_io_uring_enter, ring.fd, ring.to_submit, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    if (submitted < 0 && errno != EINTR) fail("io_uring_enter");
    if (submitted > 0) ring.to_submit -= (unsigned)submitted;
}

/* -- the work ------------------------------------------------------------------------------------------------- */

static void
receive(unsigned number)
{
    struct io_uring_sqe *sqe = request(IORING_OP_RECV, ends[number].fd, RECEIVED, number);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
}

static void
send_bytes(const struct end *end, unsigned what, unsigned number, const char *bytes)
{
    struct io_uring_sqe *sqe = request(IORING_OP_SEND, end->fd, what, number);
    sqe->addr = (uintptr_t)bytes;
    sqe->len = MESSAGE;
    sqe->msg_flags = MSG_NOSIGNAL;
}

static void
open_connections(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, CONNECTIONS))
        fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &length)) fail("getsockname");

    for (unsigned i = 0; i < 2 * CONNECTIONS; i += 2) {
        ends[i] = (struct end){ .fd = socket(AF_INET, SOCK_STREAM, 0) };
        if (connect(ends[i].fd, (struct sockaddr *)&address, length)) fail("connect");
        ends[i + 1] = (struct end){ .fd = accept(listener, NULL, NULL), .left = -1 };
        if (ends[i + 1].fd < 0) fail("accept");
        receive(i);
        receive(i + 1);
    }
    close(listener);
}

/* One message has come; returns the number of round trips that it completed. */
static long
serve(unsigned number, const struct io_uring_cqe *cqe)
{
    struct end *end = &ends[number];
    if (cqe->res == -ENOBUFS) fail("no buffer is left");
    if (cqe->res <= 0) return 0;
    if (!(cqe->flags & IORING_CQE_F_MORE)) receive(number);
    if (cqe->res != MESSAGE) fail("a part of a message");
    unsigned buffer = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    if (end->left < 0) {
        send_bytes(end, SENT, buffer, buffers.memory[buffer]);
        return 0;
    }
    if (memcmp(buffers.memory[buffer], message, MESSAGE) != 0) fail("wrong answer");
    offer(buffer);
    if (--end->left > 0) send_bytes(end, CLIENT_SENT, 0, message);
    return 1;
}

static long
complete(const struct io_uring_cqe *cqe)
{
    unsigned what = (unsigned)(cqe->user_data >> 32), number = (unsigned)cqe->user_data;
    if (what == RECEIVED) return serve(number, cqe);
    if (cqe->res != MESSAGE) fail("send");
    if (what == SENT) offer(number);
    return 0;
}

static long
run(long round_trips)
{
    long done = 0, total = round_trips / CONNECTIONS * CONNECTIONS;
    open_ring();
    open_buffers();
    open_connections();
    for (unsigned i = 0; total > 0 && i < 2 * CONNECTIONS; i += 2) {
        ends[i].left = total / CONNECTIONS;
        send_bytes(&ends[i], CLIENT_SENT, 0, message);
    }
    while (done < total) {
        enter();
        unsigned head = *ring.cq_head;
        for (; head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE); head++)
            done += complete(&ring.cqes[head & *ring.cq_mask]);
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < 2 * CONNECTIONS; i++) close(ends[i].fd);
    close(ring.fd);
    ring.to_submit = 0;
    buffers.tail = 0;
    return done;
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s ROUND_TRIPS WARM_UP_ROUND_TRIPS\n", argv[0]);
        return 2;
    }
    memset(message, 'm', MESSAGE);
    run(atol(argv[2]));

    long wanted = atol(argv[1]);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    long done = run(wanted);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("{\"status\":\"%s\",\"cpu\":%.9f,\"wall\":%.9f,\"operations\":%ld,\"backend\":\"uring\","
           "\"result\":\"%ld\"}\n",
           done == wanted ? "ok" : "wrong result", cpu, wall, wanted, done);
    return 0;
}
