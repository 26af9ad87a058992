/* See process_fd.h. Linux has pidfds (from 5.3 on). On a BSD a kqueue can be waited for as any descriptor can.
 * Sources: pidfd_open(2), kqueue(2). */
#include "process_fd.h"

#include <errno.h>
#include <unistd.h>

#include "platform.h"

#if HD_HAS_LINUX
#include <sys/syscall.h>

int hd_process_fd(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : fd;
}
#elif HD_HAS_KQUEUE
#include <sys/event.h>
#include <sys/time.h>

int hd_process_fd(pid_t pid)
{
    int fd = kqueue();
    if (fd < 0) return -errno;
    struct kevent event;
    EV_SET(&event, (uintptr_t)pid, EVFILT_PROC, EV_ADD | EV_ONESHOT, NOTE_EXIT, 0, NULL);
    if (kevent(fd, &event, 1, NULL, 0, NULL) == 0) return fd;
    int error = -errno;
    close(fd);
    return error;
}
#else
int hd_process_fd(pid_t pid)
{
    (void)pid;
    return -ENOSYS;
}
#endif
