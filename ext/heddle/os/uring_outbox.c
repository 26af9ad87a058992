/* See uring_outbox.h. */
#include "uring_outbox.h"

#include <string.h>

#include "core/check.h"
#include "uring_buffers.h"

static const size_t MEMORY_SIZE = (size_t)URING_COPIES * URING_COPY_SIZE;

bool uring_outbox_has_room(uring_outbox *outbox, size_t size)
{
    if (size > URING_COPY_SIZE || outbox->refused) return false;
    if (outbox->memory) return outbox->free_count > 0;
    outbox->memory = uring_memory(MEMORY_SIZE);
    outbox->refused = !outbox->memory;
    if (outbox->refused) return false;
    for (unsigned i = 0; i < URING_COPIES; i++) outbox->free[i] = (uint8_t)(URING_COPIES - 1 - i);
    outbox->free_count = URING_COPIES;
    return true;
}

char *uring_outbox_copy(uring_outbox *outbox, const char *bytes, size_t size)
{
    HD_ASSERT(size <= URING_COPY_SIZE && outbox->free_count > 0);
    char *copy = outbox->memory + (size_t)outbox->free[--outbox->free_count] * URING_COPY_SIZE;
    memcpy(copy, bytes, size);
    return copy;
}

void uring_outbox_free(uring_outbox *outbox, const char *copy)
{
    HD_ASSERT(outbox->free_count < URING_COPIES);
    outbox->free[outbox->free_count++] = (uint8_t)((size_t)(copy - outbox->memory) / URING_COPY_SIZE);
}

void uring_outbox_close(uring_outbox *outbox, const uring_ring *ring, bool in_use)
{
    if (outbox->memory) uring_memory_free(outbox->memory, MEMORY_SIZE, ring, in_use);
    *outbox = (uring_outbox){0};
}
