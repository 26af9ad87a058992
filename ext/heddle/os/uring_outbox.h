/* Memory that a ring sends from: copies, so that no string or stack has to stay for the kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uring_ring.h"

enum { URING_COPY_SIZE = 4 * 1024, URING_COPIES = 128 };

typedef struct {
    char *memory; /* NULL: it has not been made, or there is none */
    uint8_t free[URING_COPIES];
    unsigned free_count;
    bool refused;
} uring_outbox;

/* Is there room for a copy of so many bytes? The memory is made when this is first asked. */
bool uring_outbox_has_room(uring_outbox *outbox, size_t size);

/* A copy, when there is room. */
char *uring_outbox_copy(uring_outbox *outbox, const char *bytes, size_t size);

/* The kernel has done with it. */
void uring_outbox_free(uring_outbox *outbox, const char *copy);

/* In use: the kernel may still send from it. Then its memory is given back, but not its addresses. */
void uring_outbox_close(uring_outbox *outbox, const uring_ring *ring, bool in_use);
