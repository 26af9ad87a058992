/* Older kernels and containers, by a seccomp filter in a child: no epoll_pwait2 (timeouts in milliseconds, still
 * never early), no RWF_NOWAIT, no io_uring (a reason for people), an io_uring that reads nothing by itself. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"
#include "os/read_write.h"

/* False where the kernel takes no filters. */
static bool refuse(int system_call, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)system_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Runs the body in a child whose system call fails like that. */
static void without(int system_call, int error, void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!refuse(system_call, error)) _exit(TEST_SKIPPED);
        body();
        fflush(NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(child, waitpid(child, &status, 0));
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED) SKIP("no seccomp filters here");
    CHECK_EQ(0, status);
}

static void sleep_on_epoll(void)
{
    open_setting(&settings[2]);
    for (int64_t timeout_ns = 1; timeout_ns < 5 * HD_NS_PER_MS; timeout_ns = timeout_ns * 3 + 7) {
        waiter sleeper = {0};
        int64_t start_ns = hd_clock_now();
        CHECK_EQ(0, hd_wait_begin(&sleeper.wait, &reactor, HD_WAIT_FOR_SLEEP, 8, start_ns + timeout_ns));
        int turns = 0;
        while (!sleeper.woken) turns++, turn(HD_NO_DEADLINE);
        CHECK_AT_LEAST(timeout_ns, hd_clock_now() - start_ns);
        CHECK_AT_LEAST(turns, 2); /* rounded up: one wait is enough */
        hd_wait_end(&sleeper.wait);
    }
    waiter far = {0};
    CHECK_EQ(0, hd_wait_begin(&far.wait, &reactor, HD_WAIT_FOR_SLEEP, 8, HD_NO_DEADLINE - 1));
    now_on->ops->wake(reactor.backend);
    CHECK_EQ(0, turn(HD_NO_DEADLINE)); /* more milliseconds than an int holds */
    hd_wait_end(&far.wait);
    now_on->ops->wake(reactor.backend);
    CHECK_EQ(0, turn(HD_NO_DEADLINE)); /* for ever, but for the wake */
    close_setting();
}

TEST(epoll_without_nanoseconds)
{
    without(SYS_epoll_pwait2, ENOSYS, sleep_on_epoll);
    without(SYS_epoll_pwait2, EPERM, sleep_on_epoll); /* container runtimes that do not know the call */
}

static void probe_uring(void)
{
    char reason[200] = "";
    hd_backend *backend;
    CHECK(hd_backend_uring.probe(reason, sizeof(reason)) < 0);
    CHECK(strlen(reason) > strlen("io_uring_setup: "));
    CHECK(hd_backend_uring.open(&backend, false) < 0);
    CHECK(hd_backend_uring.open(&backend, true) < 0);
    CHECK_EQ(0, hd_backend_epoll.probe(reason, sizeof(reason)));
}

TEST(uring_refused)
{
    without(SYS_io_uring_setup, ENOSYS, probe_uring);
    without(SYS_io_uring_setup, EPERM, probe_uring);
    without(SYS_io_uring_setup, ENOMEM, probe_uring);
    without(SYS_io_uring_setup, EMFILE, probe_uring);
    without(SYS_io_uring_setup, EINVAL, probe_uring);
}

static void read_by_itself(void)
{
    for (int i = 0; i < 2; i++) {
        int fds[2];
        waiter waiter = {.interest = {.size = 10}};
        open_setting(&settings[i]);
        CHECK_EQ(0, world->pair(fds));
        CHECK_EQ(0, park_given(&waiter, fds[0], POLLIN, HD_NO_DEADLINE));
        check_quiet();
        world->write(fds[1], 3);
        CHECK_EQ(POLLIN, await_event(&waiter));
        CHECK(!waiter.interest.answered);
        CHECK_EQ(3, world->read(fds[0]));
        CHECK_EQ(0, park_given(&waiter, fds[0], POLLIN, HD_NO_DEADLINE));
        unpark(&waiter);
        world->close(fds[0]), world->close(fds[1]);
        close_setting();
    }
}

TEST(uring_that_only_tells_of_readiness)
{
    without(SYS_io_uring_register, EINVAL, read_by_itself);
    without(SYS_io_uring_register, EPERM, read_by_itself);
}

static void try_pipe(void)
{
    static char bytes[100000];
    int fds[2];
    alarm(10);
    CHECK_EQ(0, pipe(fds));
    hd_file_kind kind = HD_MAYBE_FILE;
    CHECK_EQ(-EAGAIN, hd_rw_try(HD_READ, fds[0], bytes, 10, HD_NO_OFFSET, &kind));
    ssize_t moved;
    while ((moved = hd_rw_try(HD_WRITE, fds[1], bytes, sizeof(bytes), HD_NO_OFFSET, &kind)) > 0) continue;
    CHECK_EQ(-EAGAIN, moved);
    while ((moved = hd_rw_try(HD_READ, fds[0], bytes, sizeof(bytes), HD_NO_OFFSET, &kind)) > 0) continue;
    CHECK_EQ(-EAGAIN, moved);
    int file = open("/proc/self/exe", O_RDONLY);
    CHECK_EQ(-EINPROGRESS, hd_rw_try(HD_READ, file, bytes, 10, HD_NO_OFFSET, &kind));
}

static void try_pipe_without_writes(void)
{
    if (!refuse(SYS_pwritev2, ENOSYS)) _exit(TEST_SKIPPED);
    try_pipe();
}

TEST(transfers_without_nowait)
{
    without(SYS_preadv2, EOPNOTSUPP, try_pipe_without_writes);
    without(SYS_preadv2, ENOSYS, try_pipe_without_writes);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(epoll_without_nanoseconds);
    RUN(uring_refused);
    RUN(uring_that_only_tells_of_readiness);
    RUN(transfers_without_nowait);
    return test_finish();
}
