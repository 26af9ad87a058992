/* os/read_write.h: a try never blocks, though every descriptor here is in blocking mode. An alarm ends the program
 * if one does. */
#include "harness.h"
#include "os/read_write.h"

static char bytes[1 << 20];

static ssize_t try_read(int fd, size_t size, bool is_socket)
{
    hd_file_kind kind = is_socket ? HD_SOCKET : HD_MAYBE_FILE;
    return hd_rw_try(HD_READ, fd, bytes, size, HD_NO_OFFSET, &kind);
}

static ssize_t try_write(int fd, size_t size, bool is_socket)
{
    hd_file_kind kind = is_socket ? HD_SOCKET : HD_MAYBE_FILE;
    return hd_rw_try(HD_WRITE, fd, bytes, size, HD_NO_OFFSET, &kind);
}

/* Both ends of a stream: nothing there, something there, full, gone. */
static void check_stream(int reader, int writer, bool is_socket)
{
    CHECK_EQ(-EAGAIN, try_read(reader, 10, is_socket));
    CHECK_EQ(5, try_write(writer, 5, is_socket));
    CHECK_EQ(5, try_read(reader, 10, is_socket));
    CHECK_EQ(-EAGAIN, try_read(reader, 10, is_socket));
    ssize_t moved, written = 0, got = 0;
    while ((moved = try_write(writer, sizeof(bytes), is_socket)) > 0) {
        written += moved;
        CHECK_AT_LEAST(moved, (ssize_t)sizeof(bytes));
    }
    CHECK_EQ(-EAGAIN, moved);
    CHECK_AT_LEAST(4096, written);
    while ((moved = try_read(reader, sizeof(bytes), is_socket)) > 0) got += moved;
    CHECK_EQ(-EAGAIN, moved);
    CHECK_EQ(written, got);
    close(writer);
    CHECK_EQ(0, try_read(reader, 10, is_socket));
    close(reader);
}

TEST(pipes)
{
    int fds[2];
    CHECK_EQ(0, pipe(fds));
    check_stream(fds[0], fds[1], false);
    CHECK_EQ(0, pipe(fds));
    close(fds[0]);
    CHECK_EQ(-EPIPE, try_write(fds[1], 10, false));
    close(fds[1]);
}

TEST(sockets)
{
    int fds[2];
    for (int as_socket = 0; as_socket < 2; as_socket++) { /* the caller may not know that it is one */
        CHECK_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
        check_stream(fds[0], fds[1], as_socket);
    }
    signal(SIGPIPE, SIG_DFL);
    CHECK_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    close(fds[0]);
    CHECK_EQ(-EPIPE, try_write(fds[1], 10, true)); /* and no signal */
    signal(SIGPIPE, SIG_IGN);
    close(fds[1]);
}

TEST(files)
{
    FILE *file = tmpfile();
    CHECK(file);
    int fd = fileno(file);
    ssize_t written = try_write(fd, 1000, false);
    CHECK(written == 1000 || written == -EINPROGRESS);
    if (written < 0) CHECK_EQ(1000, pwrite(fd, bytes, 1000, 0));
    CHECK_EQ(1000, lseek(fd, written < 0 ? 1000 : 0, SEEK_CUR)); /* a try moves the position as write does */
    ssize_t got = hd_rw_try(HD_READ, fd, bytes, 2000, 0, &(hd_file_kind){HD_MAYBE_FILE});
    CHECK(got == 1000 || got == -EINPROGRESS);
    got = hd_rw_try(HD_READ, fd, bytes, 2000, 1000, &(hd_file_kind){HD_MAYBE_FILE});
    CHECK(got == 0 || got == -EINPROGRESS);
    CHECK_EQ(1000, lseek(fd, 0, SEEK_CUR)); /* pread leaves it */
    fclose(file);
}

TEST(refusals)
{
    int fds[2];
    CHECK_EQ(0, pipe(fds));
    CHECK_EQ(-EBADF, try_read(fds[1], 10, false));
    CHECK_EQ(-EBADF, try_write(fds[0], 10, false));
    CHECK_EQ(-ESPIPE, hd_rw_try(HD_READ, fds[0], bytes, 10, 5, &(hd_file_kind){HD_MAYBE_FILE}));
    close(fds[0]), close(fds[1]);
    CHECK_EQ(-EBADF, try_read(fds[0], 10, false));
    CHECK_EQ(-EBADF, try_read(fds[0], 10, true));
    CHECK_EQ(-EBADF, try_write(-1, 10, false));
}

/* Devices whose driver knows no RWF_NOWAIT are polled first. */
TEST(terminals)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) SKIP("no pseudo terminals: %s", strerror(errno));
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (terminal < 0) {
        close(master);
        SKIP("no pseudo terminals: %s", strerror(errno));
    }
    CHECK_EQ(-EAGAIN, try_read(terminal, 10, false));
    CHECK_EQ(3, write(master, "ab\n", 3));
    ssize_t got;
    for (int i = 0; (got = try_read(terminal, 10, false)) == -EAGAIN && i < 1000; i++) usleep(1000);
    CHECK_EQ(3, got);
    CHECK_EQ(-EAGAIN, try_read(terminal, 10, false));
    CHECK_EQ(2, try_write(terminal, 2, false));
    close(terminal), close(master);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    alarm(20);
    RUN(pipes);
    RUN(sockets);
    RUN(files);
    RUN(refusals);
    RUN(terminals);
    return test_finish();
}
