/* See uring_buffers.h. The kernel's structs are declared here, because older headers have no names for them. */
#include "uring_buffers.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/check.h"

enum { REGISTER_BUFFER_RING = 22, INDEX_MASK = URING_BUFFERS - 1 };

typedef struct {
    uint64_t address;
    uint32_t size;
    uint16_t number;
    uint16_t tail; /* of the ring, in its first entry only */
} offered_buffer;

typedef struct {
    uint64_t address;
    uint32_t entries;
    uint16_t group, flags;
    uint64_t reserved[3];
} registration;

void *uring_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, size, MADV_DONTFORK); /* the bytes that come are for the parent */
    return memory;
}

void uring_memory_free(void *memory, size_t size, const uring_ring *ring, bool in_use)
{
    if (hd_forked_since(ring->fork_generation)) return; /* a child has no such mapping: MADV_DONTFORK */
    if (in_use) /* a late write then finds no memory, and no memory that belongs to others by then */
        mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    else
        munmap(memory, size);
}

static const size_t MEMORY_SIZE = (size_t)URING_BUFFERS * URING_BUFFER_SIZE,
                    RING_SIZE = URING_BUFFERS * sizeof(offered_buffer);

int uring_buffers_open(uring_buffers *buffers, const uring_ring *ring)
{
    *buffers = (uring_buffers){.offered = uring_memory(RING_SIZE)};
    registration given = {.address = (uintptr_t)buffers->offered, .entries = URING_BUFFERS,
                          .group = URING_BUFFER_GROUP};
    int error = buffers->offered ? 0 : -ENOMEM;
    if (!error && syscall(SYS_io_uring_register, ring->fd.number, REGISTER_BUFFER_RING, &given, 1) < 0) error = -errno;
    if (!error && !(buffers->memory = uring_memory(MEMORY_SIZE))) error = -ENOMEM;
    if (error) {
        uring_buffers_close(buffers, ring, false);
        return error;
    }
    for (int i = 0; i < URING_BUFFERS; i++) uring_buffers_offer(buffers, buffers->memory + i * URING_BUFFER_SIZE);
    return 0;
}

void uring_buffers_close(uring_buffers *buffers, const uring_ring *ring, bool in_use)
{
    if (buffers->memory) uring_memory_free(buffers->memory, MEMORY_SIZE, ring, in_use);
    if (buffers->offered) uring_memory_free(buffers->offered, RING_SIZE, ring, in_use);
    *buffers = (uring_buffers){0};
}

const char *uring_buffers_take(uring_buffers *buffers, unsigned completion_flags)
{
    unsigned number = completion_flags >> IORING_CQE_BUFFER_SHIFT;
    HD_ASSERT(number < URING_BUFFERS);
    buffers->taken++;
    return buffers->memory + (size_t)number * URING_BUFFER_SIZE;
}

void uring_buffers_offer(uring_buffers *buffers, const char *buffer)
{
    offered_buffer *offered = buffers->offered, *next = &offered[buffers->tail & INDEX_MASK];
    next->address = (uintptr_t)buffer;
    next->size = URING_BUFFER_SIZE;
    next->number = (uint16_t)((buffer - buffers->memory) / URING_BUFFER_SIZE);
    __atomic_store_n(&offered->tail, ++buffers->tail, __ATOMIC_RELEASE);
}
