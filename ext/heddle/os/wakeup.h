/* WAKE-UPS: how another thread (or a signal handler) ends a poll.
 *
 * Way: while the kernel watches descriptors for the backend, a poll sleeps there, and an eventfd among them ends it.
 * With no descriptors it sleeps on a futex, as a waiting thread does. A message to another thread and its answer
 * then take a seventh less time. Price: a state says where the poll sleeps. Without these calls of Linux, a pipe stands
 * for the eventfd, and a poll always sleeps on descriptors. Sources: eventfd(2), futex(2), pipe(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fork.h"
#include "platform.h"

typedef struct {
    hd_private_fd fd; /* non-blocking and close-on-exec */
#if !HD_HAS_LINUX
    hd_private_fd writer; /* the other end of the pipe */
#endif
    int state; /* see wakeup.c. Atomic */
} hd_wakeup;

/* Returns 0 or -errno. */
int hd_wakeup_open(hd_wakeup *wakeup);
void hd_wakeup_close(hd_wakeup *wakeup);

/* Ends the poll. Async-signal-safe; errno is preserved. */
void hd_wakeup_signal(hd_wakeup *wakeup);

/* Was it signalled since the last poll that wanted to sleep? Then this poll does not sleep. The signal is taken: a
 * second call says no. */
bool hd_wakeup_was_signalled(hd_wakeup *wakeup);

/* Sleeps until it is signalled, or a signal handler has run, or for timeout_ns, never less (HD_NO_DEADLINE: for ever).
 * No descriptor is watched meanwhile. */
void hd_wakeup_sleep(hd_wakeup *wakeup, int64_t timeout_ns);

/* Notes that the poll no longer sleeps, in the kernel's watch or here. Signals up to now have had their effect. */
void hd_wakeup_note_awake(hd_wakeup *wakeup);

/* Makes the descriptor wait for the next signal. */
void hd_wakeup_clear(const hd_wakeup *wakeup);
