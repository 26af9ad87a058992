/* WAKE-UPS: how another thread (or a signal handler) ends a poll.
 *
 * Way: while the kernel watches descriptors for the backend, a poll sleeps there, and an eventfd among them ends it.
 * With no descriptors it sleeps on a futex, as a waiting thread does. A message to another thread and its answer
 * then take a seventh less time. Price: a state says where the poll sleeps. Sources: eventfd(2), futex(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fork.h"

typedef struct {
    hd_private_fd fd; /* non-blocking and close-on-exec */
    int state;        /* see wakeup.c. Atomic */
} hd_wakeup;

/* Returns 0 or -errno. */
int hd_wakeup_open(hd_wakeup *wakeup);
void hd_wakeup_close(hd_wakeup *wakeup);

/* Ends the poll. Async-signal-safe; errno is preserved. */
void hd_wakeup_signal(hd_wakeup *wakeup);

/* Was it signalled since the last poll that wanted to sleep? Then this poll does not sleep. */
bool hd_wakeup_was_signalled(hd_wakeup *wakeup);

/* Sleeps on the futex until it is signalled, or a signal handler has run, or for timeout_ns, never less
 * (HD_NO_DEADLINE: for ever). */
void hd_wakeup_sleep(hd_wakeup *wakeup, int64_t timeout_ns);

/* Notes that a sleep is over, in the kernel's watch or on the futex. A signal that was sent has ended it. */
void hd_wakeup_note_awake(hd_wakeup *wakeup);

/* Empties the eventfd. */
void hd_wakeup_clear(const hd_wakeup *wakeup);
