/* See uring_ring.h. Linux 5.11 is the oldest kernel that works (IORING_ENTER_EXT_ARG: a timeout without an operation
 * of its own). So does 5.10 from 5.10.162 on, which got the io_uring of 5.15. Every newer feature is tried, and not
 * used when it is refused. */
#include "uring_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

/* Debian 12's headers are newer than all of these; older ones do not stop the build. */
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#ifndef IORING_SQ_TASKRUN
#define IORING_SQ_TASKRUN (1U << 2)
#endif

/* The kernel finds a request that must be cancelled by a hash table, which is larger the more completions fit in.
 * With the default of 2 for each entry, taking back a poll costs ever more from 1,000 polls on. */
enum { MINIMUM_ENTRIES = 64, COMPLETIONS_PER_ENTRY = 32, SUBMIT_TRIES_MAX = 16 };

static const unsigned NEEDED_FEATURES =
    IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG; /* 5.4, 5.5, 5.11 */

static int setup(unsigned entries, unsigned flags, struct io_uring_params *params)
{
    for (; entries >= MINIMUM_ENTRIES; entries /= 2) { /* a small RLIMIT_MEMLOCK allows only a smaller ring */
        memset(params, 0, sizeof(*params));
        params->flags = flags | IORING_SETUP_CQSIZE;
        params->cq_entries = entries * COMPLETIONS_PER_ENTRY;
        int fd = (int)syscall(SYS_io_uring_setup, entries, params);
        if (fd >= 0) return fd;
        if (errno != ENOMEM) return -errno;
    }
    return -ENOMEM;
}

/* Sets up the ring with the best flags that the kernel accepts. DEFER_TASKRUN (6.1) ties the ring to one native
 * thread. */
static int setup_best(unsigned entries, bool pinned, struct io_uring_params *params)
{
    const unsigned candidates[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, /* 5.19 */
        0,
    };
    int fd = -EINVAL;
    for (size_t i = pinned ? 0 : 1; i < sizeof(candidates) / sizeof(*candidates) && fd == -EINVAL; i++)
        fd = setup(entries, candidates[i], params);
    return fd;
}

bool uring_ring_can_defer_work(void)
{
    struct io_uring_params params;
    int fd = setup(MINIMUM_ENTRIES, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, &params);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void *map(int fd, size_t size, off_t offset)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, size, MADV_DONTFORK); /* the child of a fork must not see the parent's rings */
    return memory;
}

int uring_ring_open(uring_ring *ring, unsigned entries, bool pinned)
{
    struct io_uring_params params;
    int fd = setup_best(entries, pinned, &params);
    *ring = (uring_ring){.fork_generation = hd_fork_generation};
    if (fd < 0) return fd;
    hd_private_fd_own(&ring->fd, fd);
    if ((params.features & NEEDED_FEATURES) != NEEDED_FEATURES) {
        uring_ring_close(ring);
        return -EOPNOTSUPP;
    }
    size_t sq_size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    ring->ring_size = sq_size > cq_size ? sq_size : cq_size;
    ring->sqe_size = params.sq_entries * sizeof(struct io_uring_sqe);
    ring->ring_memory = map(fd, ring->ring_size, IORING_OFF_SQ_RING);
    if (ring->ring_memory) ring->sqe_memory = map(fd, ring->sqe_size, IORING_OFF_SQES);
    if (!ring->sqe_memory) {
        uring_ring_close(ring);
        return -ENOMEM;
    }
    char *base = ring->ring_memory;
    ring->sq_head = (unsigned *)(base + params.sq_off.head);
    ring->sq_tail = (unsigned *)(base + params.sq_off.tail);
    ring->sq_flags = (unsigned *)(base + params.sq_off.flags);
    ring->sq_mask = *(unsigned *)(base + params.sq_off.ring_mask);
    ring->sq_entries = params.sq_entries;
    ring->cq_head = (unsigned *)(base + params.cq_off.head);
    ring->cq_tail = (unsigned *)(base + params.cq_off.tail);
    ring->cq_mask = *(unsigned *)(base + params.cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(base + params.cq_off.cqes);
    ring->sqes = ring->sqe_memory;
    unsigned *array = (unsigned *)(base + params.sq_off.array);
    for (unsigned i = 0; i < params.sq_entries; i++) array[i] = i; /* entry i is always in slot i */
    return 0;
}

void uring_ring_close(uring_ring *ring)
{
    if (!hd_forked_since(ring->fork_generation)) { /* a child has no such mapping: MADV_DONTFORK */
        if (ring->sqe_memory) munmap(ring->sqe_memory, ring->sqe_size);
        if (ring->ring_memory) munmap(ring->ring_memory, ring->ring_size);
    }
    ring->sqe_memory = ring->ring_memory = NULL;
    hd_private_fd_close(&ring->fd);
}

static bool full(const uring_ring *ring)
{
    return ring->sq_local_tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) == ring->sq_entries;
}

struct io_uring_sqe *uring_ring_sqe(uring_ring *ring)
{
    /* The kernel may refuse for a moment. EAGAIN: no memory for the requests. EBUSY: completions must be fetched
     * first. */
    for (int tries = 0; full(ring) && tries < SUBMIT_TRIES_MAX; tries++) uring_ring_enter(ring, 0, 0);
    if (full(ring)) return NULL;
    struct io_uring_sqe *sqe = &ring->sqes[ring->sq_local_tail++ & ring->sq_mask];
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

bool uring_ring_withdraw(uring_ring *ring, unsigned number, uint64_t user_data, uint64_t other_user_data)
{
    struct io_uring_sqe *sqe = &ring->sqes[number & ring->sq_mask];
    if (ring->sq_local_tail - number > uring_ring_unsubmitted(ring) || sqe->user_data != user_data) return false;
    *sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .fd = -1, .user_data = other_user_data};
    return true;
}

bool uring_ring_was_given(const uring_ring *ring, unsigned number)
{
    return number - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) >= ring->sq_entries;
}

int uring_ring_enter(uring_ring *ring, unsigned min_complete, int64_t timeout_ns)
{
    struct __kernel_timespec timeout = {timeout_ns / HD_NS_PER_SECOND, timeout_ns % HD_NS_PER_SECOND};
    struct io_uring_getevents_arg argument = {0};
    if (timeout_ns != HD_NO_DEADLINE) argument.ts = (uint64_t)(uintptr_t)&timeout;
    __atomic_store_n(ring->sq_tail, ring->sq_local_tail, __ATOMIC_RELEASE);
    int submitted = (int)syscall(SYS_io_uring_enter, ring->fd.number, uring_ring_unsubmitted(ring), min_complete,
                                 IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof(argument));
    int error = submitted < 0 ? -errno : 0;
    ring->sq_submitted = __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE);
    return error;
}

bool uring_ring_wants_enter(const uring_ring *ring)
{
    return __atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

struct io_uring_cqe *uring_ring_peek(uring_ring *ring)
{
    unsigned head = *ring->cq_head;
    if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) return NULL;
    return &ring->cqes[head & ring->cq_mask];
}

void uring_ring_advance(uring_ring *ring)
{
    __atomic_store_n(ring->cq_head, *ring->cq_head + 1, __ATOMIC_RELEASE);
}
