/* THE RING'S OUTBOX: memory from which a ring sends. It has copies of the bytes, so that no string or stack has to
 * stay for the kernel. When no copy is free, the write is made directly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uring_ring.h"

enum { URING_COPY_SIZE = 4 * 1024, URING_COPIES = 128 };

typedef struct {
    char *memory; /* NULL: it was not allocated yet, or could not be */
    uint8_t free[URING_COPIES];
    unsigned free_count;
    bool refused;
} uring_outbox;

/* Is there room for a copy of this number of bytes? The memory is allocated at the first call. */
bool uring_outbox_has_room(uring_outbox *outbox, size_t size);

/* Makes a copy, when there is room. */
char *uring_outbox_copy(uring_outbox *outbox, const char *bytes, size_t size);

/* Frees a copy that the kernel has finished. */
void uring_outbox_free(uring_outbox *outbox, const char *copy);

/* Closes the outbox. in_use: the kernel may still send from it. Then its memory is freed, but not its addresses. */
void uring_outbox_close(uring_outbox *outbox, const uring_ring *ring, bool in_use);
