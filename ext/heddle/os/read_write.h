/* Makes one read or write that never blocks, whatever the descriptor is. For files, a worker can make it. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "worker.h"

typedef enum { HD_READ, HD_WRITE } hd_direction;

/* The kind of a descriptor, as far as the caller knows it. */
typedef enum { HD_MAYBE_FILE, HD_STREAM, HD_SOCKET, HD_TERMINAL } hd_file_kind;

enum { HD_NO_OFFSET = -1 };

/* The result of a read of a terminal that must wait, at most for the time of hd_terminal_read_timeout. No call that
 * moves bytes has this error. */
enum { HD_TERMINAL_WAITS = -EDOM };

/* Returns the number of bytes moved, or -errno. -EAGAIN: not ready, wait for readiness. HD_TERMINAL_WAITS: not ready,
 * wait for a time; then it is the end of the file. -EINPROGRESS: only a worker can do it without blocking (a file that
 * is not in the page cache, or that the kernel cannot write without waiting). *kind is corrected. */
ssize_t hd_rw_try(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind *kind);

/* Writes several pieces to a socket, and returns what hd_rw_try would. -EINPROGRESS: it is not a socket. */
ssize_t hd_send_parts(int fd, struct iovec *parts, int count);

/* Does a system call wait here until it is done? */
bool hd_in_blocking_mode(int fd);

/* Is it a regular file? Something that only looks like a file is not, for example a FIFO, or a device that returns
 * one message at a time. */
bool hd_is_regular_file(int fd);

/* Is it a pipe, with or without a name? */
bool hd_is_fifo(int fd);

/* How long a read waits for the first byte, in ns: HD_NO_DEADLINE, or the VTIME of a terminal with VMIN = 0. */
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

/* Makes a job for a worker. NULL when there is no memory or no descriptor for it, or the file may have record
 * locks (fcntl). For a write, the bytes are copied now. */
hd_rw_job *hd_rw_job_new(hd_direction direction, int fd, const void *bytes, size_t size, off_t offset);

/* Makes the transfer on the calling thread, which it may hold up. Returns the number of bytes moved or -errno. */
ssize_t hd_rw_blocking(hd_direction direction, int fd, void *bytes, size_t size, off_t offset);
