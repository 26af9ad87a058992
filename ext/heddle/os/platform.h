/* THE PLATFORM: what Linux alone has, and what Heddle does without it.
 *
 * Problem: a good part of the speed comes from calls that only Linux has. Way: this header says which family of calls
 * a build uses, and declares each call of Linux that stands alone. Where the system lacks it, the call says so with
 * -ENOSYS, as an old kernel does, and its caller takes the way that it has for old kernels. Calls that need more than
 * that have two ways in a file of their own: wakeup.c, process_fd.c, thread.c, hooks/idle_set.c. Apart from that, only
 * core/memory.h, thread.c and platform.c ask for the system: macOS and FreeBSD have other names for a few calls.
 * guides/platforms.md lists what is lost where.
 *
 * HEDDLE_PORTABLE (bin/build --variant portable) makes a build for Linux that has only the portable ways, so that they
 * can be tested there. Sources: the manuals of Linux, macOS and FreeBSD. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The calls of Linux: io_uring, epoll, eventfd, futex, pidfd and those below. */
#if defined(__linux__) && !defined(HEDDLE_PORTABLE)
#define HD_HAS_LINUX 1
#else
#define HD_HAS_LINUX 0
#endif

/* The kqueue(2) of a BSD or of macOS. HEDDLE_KQUEUE is libkqueue, whose descriptor cannot be waited for. */
#if !defined(__linux__) && __has_include(<sys/event.h>)
#define HD_HAS_KQUEUE 1
#else
#define HD_HAS_KQUEUE 0
#endif

#if HD_HAS_KQUEUE || defined(HEDDLE_KQUEUE)
#define HD_KQUEUE_BACKEND 1
#else
#define HD_KQUEUE_BACKEND 0
#endif

/* macOS had no such flag for long. Ruby has a handler for SIGPIPE, so the signal does no harm. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

/* Makes a pipe whose ends do not block, and are closed by exec. Returns 0 or -errno. */
int hd_pipe(int ends[2]);

/* Accepts a connection from a socket that does not block. The new socket does not block, and is closed by exec. Returns
 * its descriptor or -errno. */
int hd_accept(int fd);

/* Reads or writes what the kernel can move without waiting, also for a file or a descriptor in blocking mode. offset:
 * -1 is the position of the file. Returns bytes or -errno. */
ssize_t hd_read_now(int fd, void *bytes, size_t size, off_t offset);
ssize_t hd_write_now(int fd, void *bytes, size_t size, off_t offset);

/* Opens a file to read it, or only looks where a path leads, if the kernel has that in memory. Returns a descriptor or
 * -errno. */
int hd_open_cached(const char *path);
int hd_look_up_cached(const char *path);

/* Opens the file of a descriptor once more, with modes of its own. Returns a descriptor or -errno. */
int hd_open_again(int fd, int flags);

/* Sends bytes of a file to a socket or a pipe. position: NULL is that of the file. Returns bytes or -errno. */
ssize_t hd_send_file(int to, int from, off_t *position, size_t size);

/* Has anybody a record lock on the file (fcntl), maybe this process? True where nobody knows. */
bool hd_may_have_record_locks(int fd);
