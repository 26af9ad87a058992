/* One read or write that never blocks, whatever the descriptor is; and the same on a worker for files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/clock.h"
#include "worker.h"

typedef enum { HD_READ, HD_WRITE } hd_direction;

/* What the caller knows of the descriptor. */
typedef enum { HD_MAYBE_FILE, HD_STREAM, HD_SOCKET, HD_TERMINAL } hd_file_kind;

enum { HD_NO_OFFSET = -1 };

/* Bytes moved, or -errno. -EAGAIN: not ready, wait for readiness. -ETIME: not ready, wait for so long as
 * hd_terminal_read_timeout says; then it is the end of the file. -EINPROGRESS: only a worker can do it without
 * blocking (a file that is not in the page cache, or that the kernel cannot write without waiting). *kind is
 * corrected. */
ssize_t hd_rw_try(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind *kind);

/* The same for a write of several pieces to a socket. -EINPROGRESS: it is none. */
ssize_t hd_send_parts(int fd, struct iovec *parts, int count);

/* Does a call of the system wait here until it is done? */
bool hd_in_blocking_mode(int fd);

/* Not what only looks like a file, as a FIFO or a device that hands out one message at a time. */
bool hd_is_regular_file(int fd);

/* How long a read waits for the first byte: HD_NO_DEADLINE, or what VTIME says of a terminal with VMIN = 0, in ns. */
int64_t hd_terminal_read_timeout(int fd);

typedef struct {
    hd_job job;
    hd_direction direction;
    hd_private_fd fd; /* a duplicate: the number may be closed and reused while the worker runs */
    off_t offset;
    size_t size;
    ssize_t result; /* bytes or -errno */
    char bytes[];   /* a copy, so that the caller may give up while the worker runs */
} hd_rw_job;

/* NULL when there is no memory or no descriptor for it, or the file has record locks (fcntl). For a write, the bytes
 * are copied now. */
hd_rw_job *hd_rw_job_new(hd_direction direction, int fd, const void *bytes, size_t size, off_t offset);

/* The same on the calling thread, which it may hold up. Bytes moved or -errno. */
ssize_t hd_rw_blocking(hd_direction direction, int fd, void *bytes, size_t size, off_t offset);
