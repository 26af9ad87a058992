/* THE RING'S BUFFERS: memory into which a ring reads.
 *
 * Problem: the kernel writes into a buffer while the fiber that waits may be ended, or its string may move. Way: the
 * buffers belong to the ring, not to the waiter, so no stack or string has to stay for the kernel. The kernel takes
 * a buffer only when there are bytes for it. So a fiber that waits holds none, and a request that is dropped before
 * bytes have come holds none either.
 *
 * Price: the bytes are copied once more, to where the fiber takes them. Without a free buffer the request becomes a
 * poll.
 *
 * Sources: io_uring_register(2), IORING_REGISTER_PBUF_RING, from Linux 5.19 on; guides/design.md, "Reads in the
 * ring". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "uring_ring.h"

enum { URING_BUFFER_SIZE = 8 * 1024, URING_BUFFERS = 128, URING_BUFFER_GROUP = 1 };

typedef struct {
    char *memory;  /* NULL: no buffers exist */
    void *offered; /* the ring of the buffers that the kernel may take */
    unsigned short tail;  /* how many were offered, all in all */
    unsigned short taken; /* how many of them the kernel has filled */
} uring_buffers;

/* Opens the buffers, on the thread that submits. Returns 0 or -errno: before Linux 5.19 they do not exist. */
int uring_buffers_open(uring_buffers *buffers, const uring_ring *ring);

/* Closes the buffers. in_use: the kernel may still write into them. Then the memory is freed, but its addresses stay
 * reserved. */
void uring_buffers_close(uring_buffers *buffers, const uring_ring *ring, bool in_use);

/* Takes the buffer that a completion names, until it is offered again. */
const char *uring_buffers_take(uring_buffers *buffers, unsigned completion_flags);

/* Returns how many are free. */
static inline unsigned uring_buffers_free(const uring_buffers *buffers)
{
    return (unsigned short)(buffers->tail - buffers->taken);
}

/* Allocates memory for bytes that a ring moves; or NULL. The child of a fork does not have it. */
void *uring_memory(size_t size);

/* Frees such memory. in_use: the kernel may still use it. Then its addresses stay reserved. */
void uring_memory_free(void *memory, size_t size, const uring_ring *ring, bool in_use);

/* Gives a buffer back to the kernel. */
void uring_buffers_offer(uring_buffers *buffers, const char *buffer);
