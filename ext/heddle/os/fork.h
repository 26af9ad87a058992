/* All that a fork resets, by one handler of pthread_atfork.
 *
 * The child has one thread, the one that has forked: no workers, and nobody who holds a lock. Its descriptors lead to
 * the parent's kernel objects, and its copies of records that lay on the stacks of the parent's fibers, or that the
 * parent's workers know of, are linked nowhere. So
 *  - the generation is another one. Whatever may outlive a fork keeps the one that it began with, and is void under
 *    another: it is never unlinked, only forgotten or freed;
 *  - the locks of the guards are held across the fork, and their reset functions make their state anew;
 *  - private descriptors are closed, and nothing else is done to them: that would be done to the parent's. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "core/list.h"

/* How often this process has been forked off since the extension was loaded. */
extern unsigned hd_fork_generation;

/* Is this the child, for what began in that generation? */
static inline bool hd_forked_since(unsigned generation)
{
    return generation != hd_fork_generation;
}

/* State of the process, and the lock that guards it. */
typedef struct hd_fork_guard {
    pthread_mutex_t lock;
    void (*reset)(void); /* in the child, with the lock held; or NULL */
    struct hd_fork_guard *next;
} hd_fork_guard;

/* Once for each guard, for good. Nobody takes the lock of a guard while holding that of another. */
void hd_fork_register(hd_fork_guard *guard);

/* A descriptor that a child does not keep. All zeros: none is open. */
typedef struct {
    hd_node node;
    int number; /* -1 in the child */
} hd_private_fd;

/* Takes over an open descriptor. */
void hd_private_fd_own(hd_private_fd *fd, int number);

/* Closes it, if it is open in this process. Not to be called with the lock of a guard. */
void hd_private_fd_close(hd_private_fd *fd);
