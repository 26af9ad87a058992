/* FORK: resets the state of a child, with one handler of pthread_atfork.
 *
 * Problem: the child has only the thread that has forked: it has no workers, and no thread that would release a
 * lock. Its descriptors lead to the parent's kernel objects. Its copies of records that lay on the stacks of the
 * parent's fibers, or that the parent's workers know of, are linked nowhere. Way:
 *
 *  - The generation changes. A record that may outlive a fork stores the generation in which it began, and is void
 *    under another: it is never unlinked, only forgotten or freed.
 *  - The locks of the guards are held across the fork, and their reset functions make their state anew.
 *  - Private descriptors are closed, and not used in any other way: that would change the parent's objects.
 *
 * Price: every such record has a generation, and its users compare it. Sources: pthread_atfork(3); guides/design.md,
 * "Fork". */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "core/list.h"

/* The number of forks between this process and the process that has loaded the extension. */
extern unsigned hd_fork_generation;

/* Is this process a child, as seen from that generation? */
static inline bool hd_forked_since(unsigned generation)
{
    return generation != hd_fork_generation;
}

/* A guard: state of the process, and the lock that guards it. */
typedef struct hd_fork_guard {
    pthread_mutex_t lock;
    void (*reset)(void); /* in the child, with the lock held; or NULL */
    struct hd_fork_guard *next;
} hd_fork_guard;

/* Registers a guard for good; called once for each. Nobody takes the lock of a guard while holding that of another. */
void hd_fork_register(hd_fork_guard *guard);

/* A descriptor that a child closes. All zeros: none is open. */
typedef struct {
    hd_node node;
    int number; /* -1 in the child */
} hd_private_fd;

/* Takes over an open descriptor. */
void hd_private_fd_own(hd_private_fd *fd, int number);

/* Closes it, if it is open in this process. Must not be called with the lock of a guard. */
void hd_private_fd_close(hd_private_fd *fd);
