/* How another thread (or a signal handler) ends a poll. While the kernel watches descriptors for the backend, a poll
 * sleeps there, and an eventfd among them ends it. With nothing to watch it sleeps on a futex, as a waiting thread
 * does: a message to another thread and its answer then take a seventh less. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fork.h"

typedef struct {
    hd_private_fd fd; /* non-blocking and close-on-exec */
    int state;        /* see wakeup.c. Atomic */
} hd_wakeup;

/* 0 or -errno. */
int hd_wakeup_open(hd_wakeup *wakeup);
void hd_wakeup_close(hd_wakeup *wakeup);

/* Async-signal-safe; errno is preserved. */
void hd_wakeup_signal(hd_wakeup *wakeup);

/* Has it been signalled since the last poll that was to sleep? Then this one does not. */
bool hd_wakeup_was_signalled(hd_wakeup *wakeup);

/* Sleeps on the futex until it is signalled, or a signal handler has run; or for timeout_ns, never less
 * (HD_NO_DEADLINE: for ever). */
void hd_wakeup_sleep(hd_wakeup *wakeup, int64_t timeout_ns);

/* A sleep is over, in the kernel's watch or on the futex: what was signalled has ended it. */
void hd_wakeup_note_awake(hd_wakeup *wakeup);

/* Empties the eventfd. */
void hd_wakeup_clear(const hd_wakeup *wakeup);
