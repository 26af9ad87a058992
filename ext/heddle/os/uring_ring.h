/* The rings of io_uring by raw system calls: mapping, submission, completion. The policy is in backend_uring.c. */
#pragma once

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fork.h"

typedef struct {
    hd_private_fd fd;
    unsigned fork_generation;
    unsigned *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    unsigned sq_mask, sq_entries, cq_mask;
    unsigned sq_local_tail; /* entries are prepared up to here */
    unsigned sq_submitted;  /* the kernel was given the entries up to here */
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    void *ring_memory, *sqe_memory;
    size_t ring_size, sqe_size;
} uring_ring;

/* Makes a ring of at most `entries`, fewer where little memory may be locked (64 at least). Returns 0 or -errno;
 * -EOPNOTSUPP where a feature that Heddle needs is missing. */
int uring_ring_open(uring_ring *ring, unsigned entries, bool pinned);

/* Does the kernel know IORING_SETUP_DEFER_TASKRUN? It is asked each time. */
bool uring_ring_can_defer_work(void);

/* Closes the ring. In the child of a fork it does nothing to the parent's ring. */
void uring_ring_close(uring_ring *ring);

/* Returns a zeroed entry. When the queue is full, its entries are submitted first. NULL only if the kernel refuses. */
struct io_uring_sqe *uring_ring_sqe(uring_ring *ring);

/* The number of the entry that was given last. */
static inline unsigned uring_ring_last(const uring_ring *ring)
{
    return ring->sq_local_tail - 1;
}

/* Turns the entry of that number and with that user data into one that does nothing; its completion has the other
 * user data. False: the kernel has it already. */
bool uring_ring_withdraw(uring_ring *ring, unsigned number, uint64_t user_data, uint64_t other_user_data);

/* Has the kernel been given the entry of that number? Any thread may ask. */
bool uring_ring_was_given(const uring_ring *ring, unsigned number);

/* Submits the prepared entries and waits for min_complete completions, at most for timeout_ns (HD_NO_DEADLINE: for
 * ever). Returns 0 or -errno (-ETIME, -EINTR, ...). */
int uring_ring_enter(uring_ring *ring, unsigned min_complete, int64_t timeout_ns);

/* Does the kernel have work that only an enter finishes (deferred task work, overflown completions)? */
bool uring_ring_wants_enter(const uring_ring *ring);

static inline unsigned uring_ring_unsubmitted(const uring_ring *ring)
{
    return ring->sq_local_tail - ring->sq_submitted;
}

/* Returns how many completions there are. */
static inline unsigned uring_ring_ready(const uring_ring *ring)
{
    return __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) - *ring->cq_head;
}

/* Returns the oldest completion or NULL. The caller must advance past it afterwards. */
struct io_uring_cqe *uring_ring_peek(uring_ring *ring);
void uring_ring_advance(uring_ring *ring);
