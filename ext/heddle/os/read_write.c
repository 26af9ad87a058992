/* Reads and writes that never block (read_write.h). */
#include "read_write.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "platform.h"

enum { BLOCKING_WRITE_MAX = 4096 };

static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

bool hd_in_blocking_mode(int fd)
{
    return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

bool hd_is_regular_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

bool hd_is_fifo(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Reads the settings of a terminal that passes bytes on as they come (raw). False for everything else. */
static bool is_raw(int fd, struct termios *settings)
{
    return tcgetattr(fd, settings) == 0 && !(settings->c_lflag & ICANON);
}

int64_t hd_terminal_read_timeout(int fd)
{
    struct termios settings;
    if (!is_raw(fd, &settings) || settings.c_cc[VMIN] > 0) return HD_NO_DEADLINE;
    return settings.c_cc[VTIME] * 100 * HD_NS_PER_MS;
}

/* Does a read of the terminal wait for more bytes when there is one? poll reports the first byte. */
static bool waits_for_more(int fd, size_t size)
{
    struct termios settings;
    return size > 1 && is_raw(fd, &settings) && settings.c_cc[VMIN] > 1 && settings.c_cc[VTIME] > 0;
}

/* poll(2) is never ready for the other direction. */
static bool is_open_for(hd_direction direction, int fd)
{
    int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
    return mode == O_RDWR || mode == (direction == HD_READ ? O_RDONLY : O_WRONLY);
}

static ssize_t read_or_write(hd_direction direction, int fd, void *bytes, size_t size)
{
    ssize_t moved = direction == HD_READ ? read(fd, bytes, size) : write(fd, bytes, size);
    return moved < 0 ? -errno : moved;
}

/* Writes in nonblocking mode. The mode is shared with everybody who has the open file, so it is changed only for
 * this moment. */
static ssize_t write_in_nonblocking_mode(int fd, void *bytes, size_t size)
{
    int mode = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, mode | O_NONBLOCK);
    ssize_t moved = read_or_write(HD_WRITE, fd, bytes, size);
    fcntl(fd, F_SETFL, mode);
    return moved;
}

/* Makes one transfer of a descriptor in blocking mode that poll has called ready. A terminal is writable when there
 * is room for one byte, and the write would wait for the rest. That stops the process if the reader is a part of it.
 * With a FIFO, somebody else may have written to it, or read from it, since the poll. */
static ssize_t move_in_blocking_mode(hd_direction direction, int fd, void *bytes, size_t size)
{
    bool fifo = hd_is_fifo(fd), terminal = !fifo && isatty(fd);
    int flags = (direction == HD_READ ? O_RDONLY : O_WRONLY) | O_NONBLOCK;
    int apart = fifo || terminal ? hd_open_again(fd, flags) : -1;
    if (apart >= 0) {
        ssize_t moved = read_or_write(direction, apart, bytes, size);
        close(apart);
        return moved;
    }
    if (direction == HD_WRITE && (fifo || terminal)) return write_in_nonblocking_mode(fd, bytes, size);
    /* Writable means that a few bytes fit. */
    bool much = direction == HD_WRITE && size > BLOCKING_WRITE_MAX;
    return read_or_write(direction, fd, bytes, much ? BLOCKING_WRITE_MAX : size);
}

/* Makes a transfer where the kernel cannot promise not to block: terminals, FIFOs, old kernels' pipes, file systems
 * without NOWAIT. */
static ssize_t try_after_poll(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind kind)
{
    if (offset != HD_NO_OFFSET || is_file(fd)) return -EINPROGRESS;
    struct pollfd poll_fd = {.fd = fd, .events = direction == HD_READ ? POLLIN : POLLOUT};
    int ready = poll(&poll_fd, 1, 0);
    if (ready < 0) return -errno;
    if (ready == 0 && !is_open_for(direction, fd)) return -EBADF;
    /* A read that does not wait may find the end where poll reports no event: a FIFO that nobody has opened. */
    if (ready == 0 && hd_in_blocking_mode(fd))
        return direction == HD_READ && hd_terminal_read_timeout(fd) != HD_NO_DEADLINE ? HD_TERMINAL_WAITS : -EAGAIN;
    if (kind == HD_TERMINAL && direction == HD_READ && ready > 0 && waits_for_more(fd, size)) return -EINPROGRESS;
    return hd_in_blocking_mode(fd) ? move_in_blocking_mode(direction, fd, bytes, size)
                                   : read_or_write(direction, fd, bytes, size);
}

static ssize_t try_once(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind *kind)
{
    ssize_t moved;
    if (*kind == HD_TERMINAL) return try_after_poll(direction, fd, bytes, size, offset, *kind);
    if (*kind == HD_SOCKET && (size > 0 || direction == HD_WRITE)) { /* a read of zero bytes takes no message */
        moved = direction == HD_READ ? recv(fd, bytes, size, MSG_DONTWAIT)
                                     : send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved >= 0 || errno != ENOTSOCK) return moved < 0 ? -errno : moved;
        *kind = HD_MAYBE_FILE; /* the object is a socket, but was reopened with a path */
    }
    moved = direction == HD_READ ? hd_read_now(fd, bytes, size, offset) : hd_write_now(fd, bytes, size, offset);
    if (moved == -EOPNOTSUPP || moved == -ENOSYS) {
        *kind = HD_MAYBE_FILE;
        return try_after_poll(direction, fd, bytes, size, offset, *kind);
    }
    if (moved == -EAGAIN && (offset != HD_NO_OFFSET || (*kind == HD_MAYBE_FILE && is_file(fd)))) return -EINPROGRESS;
    return moved;
}

ssize_t hd_rw_try(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind *kind)
{
    ssize_t moved;
    do {
        moved = try_once(direction, fd, bytes, size, offset, kind);
    } while (moved == -EINTR);
    return moved;
}

ssize_t hd_send_parts(int fd, struct iovec *parts, int count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    ssize_t moved;
    do {
        moved = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (moved < 0 && errno == EINTR);
    if (moved >= 0) return moved;
    return errno == ENOTSOCK ? -EINPROGRESS : -errno;
}

static ssize_t call_kernel(hd_direction direction, int fd, void *bytes, size_t size, off_t offset)
{
    if (offset == HD_NO_OFFSET) return direction == HD_READ ? read(fd, bytes, size) : write(fd, bytes, size);
    return direction == HD_READ ? pread(fd, bytes, size, offset) : pwrite(fd, bytes, size, offset);
}

ssize_t hd_rw_blocking(hd_direction direction, int fd, void *bytes, size_t size, off_t offset)
{
    ssize_t moved;
    do {
        moved = call_kernel(direction, fd, bytes, size, offset);
    } while (moved < 0 && errno == EINTR);
    return moved < 0 ? -errno : moved;
}

static void run(hd_job *job)
{
    hd_rw_job *rw = (hd_rw_job *)job;
    rw->result = hd_rw_blocking(rw->direction, rw->fd.number, rw->bytes, rw->size, rw->offset);
}

static void release(hd_job *job)
{
    hd_private_fd_close(&((hd_rw_job *)job)->fd);
    free(job);
}

static const hd_job_type rw_type = {.run = run, .free = release};

hd_rw_job *hd_rw_job_new(hd_direction direction, int fd, const void *bytes, size_t size, off_t offset)
{
    hd_rw_job *rw = malloc(sizeof(*rw) + size);
    /* A process loses its record locks when it closes any descriptor of the file (man 2 fcntl). */
    int own_fd = rw && !hd_may_have_record_locks(fd) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own_fd < 0) {
        free(rw);
        return NULL;
    }
    *rw = (hd_rw_job){.direction = direction, .offset = offset, .size = size, .result = -EINTR};
    hd_job_init(&rw->job, &rw_type, HD_POOL_FILES);
    hd_private_fd_own(&rw->fd, own_fd);
    if (direction == HD_WRITE) memcpy(rw->bytes, bytes, size);
    return rw;
}
