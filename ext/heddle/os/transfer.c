/* Reads and writes that never block (transfer.h). */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COPY_MAX = 1 << 20, BLOCKING_WRITE_MAX = 4096 };

static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

/* The kernel cannot promise not to block here: terminals, old kernels' pipes, file systems without NOWAIT. */
static ssize_t try_after_poll(hd_direction direction, int fd, void *bytes, size_t size, off_t offset)
{
    if (offset != HD_NO_OFFSET || is_file(fd)) return -EINPROGRESS;
    struct pollfd poll_fd = {.fd = fd, .events = direction == HD_READ ? POLLIN : POLLOUT};
    int ready = poll(&poll_fd, 1, 0);
    if (ready < 0) return -errno;
    if (ready == 0) return -EAGAIN;
    /* Writable means that a little fits: a blocking descriptor would wait for the rest. */
    if (direction == HD_WRITE && size > BLOCKING_WRITE_MAX && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
        size = BLOCKING_WRITE_MAX;
    ssize_t moved = direction == HD_READ ? read(fd, bytes, size) : write(fd, bytes, size);
    return moved < 0 ? -errno : moved;
}

static ssize_t try_once(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind kind)
{
    ssize_t moved;
    if (kind == HD_SOCKET) {
        moved = direction == HD_READ ? recv(fd, bytes, size, MSG_DONTWAIT)
                                     : send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved >= 0 || errno != ENOTSOCK) return moved < 0 ? -errno : moved;
        kind = HD_MAYBE_FILE; /* the object is a socket, but was reopened with a path */
    }
    struct iovec vector = {bytes, size};
    moved = direction == HD_READ ? preadv2(fd, &vector, 1, offset, RWF_NOWAIT)
                                 : pwritev2(fd, &vector, 1, offset, RWF_NOWAIT);
    if (moved >= 0) return moved;
    int error = errno;
    if (error == EOPNOTSUPP || error == ENOSYS) return try_after_poll(direction, fd, bytes, size, offset);
    if (error == EAGAIN && (offset != HD_NO_OFFSET || (kind == HD_MAYBE_FILE && is_file(fd)))) return -EINPROGRESS;
    return -error;
}

ssize_t hd_transfer_try(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind kind)
{
    ssize_t moved;
    do {
        moved = try_once(direction, fd, bytes, size, offset, kind);
    } while (moved == -EINTR);
    return moved;
}

static void run(hd_job *job)
{
    hd_transfer_job *transfer = (hd_transfer_job *)job;
    int fd = transfer->fd;
    do {
        if (transfer->offset == HD_NO_OFFSET)
            transfer->result = transfer->direction == HD_READ ? read(fd, transfer->bytes, transfer->size)
                                                              : write(fd, transfer->bytes, transfer->size);
        else
            transfer->result = transfer->direction == HD_READ
                                   ? pread(fd, transfer->bytes, transfer->size, transfer->offset)
                                   : pwrite(fd, transfer->bytes, transfer->size, transfer->offset);
        if (transfer->result < 0) transfer->result = -errno;
    } while (transfer->result == -EINTR);
}

static void release(hd_job *job)
{
    close(((hd_transfer_job *)job)->fd);
    free(job);
}

hd_transfer_job *hd_transfer_job_new(hd_direction direction, int fd, const void *bytes, size_t size, off_t offset,
                                     int *error)
{
    if (size > COPY_MAX) size = COPY_MAX; /* a short transfer; the caller comes again */
    hd_transfer_job *transfer = malloc(sizeof(*transfer) + size);
    if (!transfer) {
        *error = -ENOMEM;
        return NULL;
    }
    memset(transfer, 0, sizeof(*transfer));
    transfer->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (transfer->fd < 0) {
        *error = -errno;
        free(transfer);
        return NULL;
    }
    transfer->job.run = run;
    transfer->job.free = release;
    transfer->direction = direction;
    transfer->offset = offset;
    transfer->size = size;
    if (direction == HD_WRITE) memcpy(transfer->bytes, bytes, size);
    return transfer;
}
