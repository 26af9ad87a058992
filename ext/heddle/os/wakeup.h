/* An eventfd with which another thread (or a signal handler) ends a poll. */
#ifndef HEDDLE_WAKEUP_H
#define HEDDLE_WAKEUP_H

/* The descriptor (non-blocking, close-on-exec) or -errno. */
int hd_wakeup_open(void);

/* Async-signal-safe; errno is preserved. */
void hd_wakeup_signal(int fd);
void hd_wakeup_clear(int fd);

#endif
