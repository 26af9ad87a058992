/* An eventfd with which another thread (or a signal handler) ends a poll. */
#ifndef HEDDLE_WAKEUP_H
#define HEDDLE_WAKEUP_H

#include "fork.h"

/* Non-blocking and close-on-exec. 0 or -errno. */
int hd_wakeup_open(hd_private_fd *fd);

/* Async-signal-safe; errno is preserved. */
void hd_wakeup_signal(const hd_private_fd *fd);
void hd_wakeup_clear(const hd_private_fd *fd);

#endif
