/* Memory that a ring reads into. The kernel takes a buffer only when there are bytes for it, so who waits holds none,
 * and a request that is dropped has none. It is the ring's, not the waiter's: no stack or string has to stay for the
 * kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "uring_ring.h"

enum { URING_BUFFER_SIZE = 8 * 1024, URING_BUFFERS = 64, URING_BUFFER_GROUP = 1 };

typedef struct {
    char *memory;  /* NULL: there are none */
    void *offered; /* the ring of those that the kernel may take */
    unsigned short tail;
} uring_buffers;

/* 0 or -errno: before Linux 5.19 there is no such thing. On the thread that submits. */
int uring_buffers_open(uring_buffers *buffers, const uring_ring *ring);

/* In use: the kernel may still write into them. Then their memory is given back, but not its addresses. */
void uring_buffers_close(uring_buffers *buffers, const uring_ring *ring, bool in_use);

/* The buffer that a completion names. */
const char *uring_buffers_find(const uring_buffers *buffers, unsigned completion_flags);

/* Memory for what a ring moves, which the child of a fork does not have; or NULL. */
void *uring_memory(size_t size);

/* In use: the kernel may still use it. Then it is given back, but not its addresses. */
void uring_memory_free(void *memory, size_t size, const uring_ring *ring, bool in_use);

/* The kernel may have it again. */
void uring_buffers_offer(uring_buffers *buffers, const char *buffer);
