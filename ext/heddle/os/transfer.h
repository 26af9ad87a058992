/* One read or write that never blocks, whatever the descriptor is; and the same on a worker for files. */
#ifndef HEDDLE_TRANSFER_H
#define HEDDLE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "worker.h"

typedef enum { HD_READ, HD_WRITE } hd_direction;

/* What the caller knows of the descriptor. */
typedef enum { HD_MAYBE_FILE, HD_STREAM, HD_SOCKET } hd_file_kind;

enum { HD_NO_OFFSET = -1 };

/* Bytes moved, or -errno. -EAGAIN: not ready, wait for readiness. -EINPROGRESS: only a worker can do it without
 * blocking (a file that is not in the page cache, or that the kernel cannot write without waiting). */
ssize_t hd_transfer_try(hd_direction direction, int fd, void *bytes, size_t size, off_t offset, hd_file_kind kind);

typedef struct {
    hd_job job;
    hd_direction direction;
    int fd; /* a duplicate: the number may be closed and reused while the worker runs */
    off_t offset;
    size_t size;
    ssize_t result; /* bytes or -errno */
    char bytes[];   /* a copy, so that the caller may give up while the worker runs */
} hd_transfer_job;

/* NULL with *error = -errno. For a write, the bytes are copied now. */
hd_transfer_job *hd_transfer_job_new(hd_direction direction, int fd, const void *bytes, size_t size, off_t offset,
                                     int *error);

#endif
