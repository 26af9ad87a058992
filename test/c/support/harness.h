/* What the contract tests share: a reactor over any backend, a world of descriptors for it (the kernel's, or the
 * simulation's), and waiters that stand for fibers parked on a descriptor. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "backend_sim.h"
#include "core/interest.h"
#include "endings.h"
#include "os/backends.h"
#include "os/fork.h"
#include "test.h"

/* The system calls that the tests need, for real or simulated descriptors. */
typedef struct {
    bool real;
    int (*pair)(int fds[2]);
    int (*file)(void);
    int (*dup)(int fd);
    void (*close)(int fd);
    void (*write)(int fd, int bytes);
    int (*read)(int fd);    /* takes everything; -1 = would block, 0 = end of file */
    int (*take)(int fd, char *bytes, int most); /* the largest number */
    short (*ready)(int fd); /* poll(2)'s answer */
} world_ops;

/* One way to run the contract. */
typedef struct {
    const char *name;
    const hd_backend_ops *ops;
    const world_ops *world;
    bool pinned;
    sim_faults faults;
} setting;

typedef struct {
    hd_wait wait;
    hd_interest interest;
    int woken;
} waiter;

static hd_reactor reactor;
static hd_map ios;
static const setting *now_on;
static const world_ops *world;

static unsigned char real_next[1 << 16]; /* by descriptor: the byte that is written next */

/* The bytes of a connection count up. */
static void real_write(int fd, int count)
{
    char bytes[4096];
    CHECK(count <= (int)sizeof(bytes) && fd < (int)sizeof(real_next));
    for (int i = 0; i < count; i++) bytes[i] = (char)real_next[fd]++;
    CHECK_EQ(count, write(fd, bytes, (size_t)count));
}

static int real_take(int fd, char *bytes, int most)
{
    ssize_t got = recv(fd, bytes, (size_t)most, MSG_DONTWAIT);
    CHECK(got >= 0 || errno == EAGAIN);
    return (int)got;
}

static int real_read(int fd)
{
    char bytes[65536];
    ssize_t total = 0, got;
    while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) total += got;
    return total ? (int)total : got < 0 && errno == EAGAIN ? -1 : 0;
}

static short real_ready(int fd)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN | POLLOUT};
    CHECK_AT_LEAST(0, poll(&answer, 1, 0));
    return answer.revents;
}

static int real_pair(int fds[2])
{
    int error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    if (!error) real_next[fds[0]] = real_next[fds[1]] = 0;
    return error;
}

static int real_file(void)
{
    return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static void real_close(int fd)
{
    CHECK_EQ(0, close(fd));
}

static const world_ops real_world = {true,       real_pair,  real_file, dup,       real_close,
                                     real_write, real_read,  real_take, real_ready};
static const world_ops sim_world = {false,     sim_pair, sim_file, sim_dup,  sim_close,
                                    sim_write, sim_read, sim_take, sim_ready};

static const setting settings[] = {
#if HD_HAS_LINUX
    {.name = "uring", .ops = &hd_backend_uring, .world = &real_world},
    {.name = "uring, pinned", .ops = &hd_backend_uring, .world = &real_world, .pinned = true},
    {.name = "epoll", .ops = &hd_backend_epoll, .world = &real_world},
#endif
    {.name = "poll", .ops = &hd_backend_poll, .world = &real_world},
    {.name = "sim, kind", .ops = &hd_backend_sim, .world = &sim_world, .faults = {.files_pollable = true}},
    {.name = "sim, nasty",
     .ops = &hd_backend_sim,
     .world = &sim_world,
     .faults = {.spurious_percent = 20,
                .duplicate_percent = 30,
                .extra_bits_percent = 30,
                .no_buffer_percent = 20,
                .late_bad_fd = true,
                .shuffle = true,
                .delay_ns_max = 3 * HD_NS_PER_MS,
                .overshoot_ns_max = HD_NS_PER_MS}},
};

enum { SETTINGS = sizeof(settings) / sizeof(*settings) };

static void open_setting(const setting *setting)
{
    now_on = setting;
    test_context = setting->name;
    world = setting->world;
    if (!world->real) sim_start(rnd64(), setting->faults);
    CHECK_EQ(0, hd_map_init(&ios));
    CHECK_EQ(0, hd_reactor_init(&reactor, &ios, hd_fork_generation));
    CHECK_EQ(0, hd_reactor_open(&reactor, setting->ops, setting->pinned));
}

/* Runs the body in a child, which must end well. */
static inline void in_child(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        body();
        fflush(NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(child, waitpid(child, &status, 0));
    CHECK_EQ(0, status);
}

/* Nothing may be linked any more. */
static void check_idle(void)
{
    CHECK_EQ(0, reactor.armed);
    CHECK_EQ(0, reactor.received);
    CHECK_EQ(0, reactor.waits.count);
    CHECK_EQ(0, reactor.timers.count);
    CHECK_EQ(0, ios.count);
    CHECK(!hd_reactor_has_ready(&reactor));
}

static void close_setting(void)
{
    check_idle();
    hd_reactor_close(&reactor);
    hd_reactor_close(&reactor); /* twice does no harm */
    hd_reactor_free(&reactor);
    hd_map_free(&ios);
    if (!world->real) sim_stop();
    test_context = "";
}

/* Runs the body on every setting that this machine offers. */
__attribute__((unused)) static void on_every_setting(void (*body)(void))
{
    char reason[200];
    int ran = 0;
    for (int i = 0; i < SETTINGS; i++) {
        if (settings[i].ops->probe(reason, sizeof(reason)) < 0) {
            printf("note: no %s here: %s\n", settings[i].name, reason);
            continue;
        }
        open_setting(&settings[i]);
        body();
        close_setting();
        ran++;
    }
    if (!ran) SKIP("no backend");
}

#define CONTRACT(name)                                                                                             \
    static void name##_body(void);                                                                                 \
    TEST(name)                                                                                                     \
    {                                                                                                              \
        on_every_setting(name##_body);                                                                             \
    }                                                                                                              \
    static void name##_body(void)

/* -- waiters ------------------------------------------------------------------------------------------------- */

/* Starts to wait; 0 or arm's -errno, and then nothing is linked. timeout_ns may be HD_NO_DEADLINE. */
static int park_given(waiter *waiter, int fd, short events, int64_t timeout_ns)
{
    waiter->woken = 0;
    int64_t deadline_ns = hd_clock_deadline(hd_clock_now(), timeout_ns);
    CHECK_EQ(0, hd_wait_begin(&waiter->wait, &reactor, HD_WAIT_FOR_IO, (hd_word)waiter, deadline_ns));
    int error = hd_interest_arm(&waiter->interest, &waiter->wait, (hd_word)(fd + 1) * 8, fd, events);
    if (error) hd_wait_end(&waiter->wait);
    return error;
}

static int park_as(waiter *waiter, bool selects, int fd, short events, int64_t timeout_ns)
{
    waiter->interest = (hd_interest){.selects = selects};
    return park_given(waiter, fd, events, timeout_ns);
}

static int park_for(waiter *waiter, int fd, short events, int64_t timeout_ns)
{
    return park_as(waiter, false, fd, events, timeout_ns);
}

__attribute__((unused)) static void park_selecting(waiter *waiter, int fd, short events)
{
    CHECK_EQ(0, park_as(waiter, true, fd, events, HD_NO_DEADLINE));
}

__attribute__((unused)) static void park(waiter *waiter, int fd, short events)
{
    CHECK_EQ(0, park_for(waiter, fd, events, HD_NO_DEADLINE));
}

static void unpark(waiter *waiter)
{
    hd_interest_disarm(&waiter->interest);
    hd_interest_release(&waiter->interest);
    hd_wait_end(&waiter->wait);
}

/* A look at the kernel that does not wait. */
static inline void poll_now(void)
{
    hd_reactor_poll_nogvl(&reactor, 0);
    hd_reactor_reap(&reactor);
}

/* Hands the ready waits to their waiters; how many. */
static int run_ready(void)
{
    int count = 0;
    for (hd_wait *wait; (wait = hd_next_ready(&reactor)); count++) {
        waiter *woken = HD_CONTAINER_OF(wait, waiter, wait);
        woken->woken++;
        CHECK_EQ(1, woken->woken);
        CHECK_EQ(HD_WAIT_DONE, wait->state);
    }
    return count;
}

/* One turn that lasts at most limit_ns. */
static int turn(int64_t limit_ns)
{
    int64_t timeout_ns = hd_reactor_timeout(&reactor);
    hd_reactor_poll_nogvl(&reactor, timeout_ns < limit_ns ? timeout_ns : limit_ns);
    hd_reactor_reap(&reactor);
    return run_ready();
}

/* Turns until the waiter is woken, which must happen soon. */
static void await_waiter(waiter *waiter)
{
    int64_t end_ns = hd_clock_now() + 5 * HD_NS_PER_SECOND;
    while (!waiter->woken) {
        if (hd_clock_now() > end_ns) FAIL("a waiter on descriptor %d is never woken", waiter->interest.fd);
        turn(100 * HD_NS_PER_MS);
    }
}

/* Turns until the waiter has its event, and ends its wait; the events. */
__attribute__((unused)) static short await_event(waiter *waiter)
{
    await_waiter(waiter);
    CHECK_EQ(HD_WOKEN_BY_EVENT, waiter->wait.wake);
    CHECK_EQ(0, waiter->interest.token);
    CHECK(waiter->interest.revents != 0);
    CHECK_EQ(0, waiter->interest.revents & ~(waiter->interest.events | POLLIN | POLLOUT)); /* (an error, a hang-up) */
    unpark(waiter);
    return waiter->interest.revents;
}

/* Nobody is woken in the next few milliseconds. */
__attribute__((unused)) static void check_quiet(void)
{
    int64_t end_ns = hd_clock_now() + (world->real ? 3 : 50) * HD_NS_PER_MS;
    do {
        CHECK_EQ(0, turn(HD_NS_PER_MS));
    } while (hd_clock_now() < end_ns);
}
