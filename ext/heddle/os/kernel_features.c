/* WHAT THE KERNEL HAS: asked, not concluded from its version.
 *
 * Problem: the version says little. Linux 5.10.162 got the io_uring of 5.15, distributions add more, and a sandbox
 * refuses what the kernel has. Way: make each call so that it does nothing, and look at the error.
 *
 * Sources: pidfd_open(2), epoll_wait(2), io_uring_setup(2). */
#include "kernel_features.h"

#include <unistd.h>

#include "platform.h"
#include "process_fd.h"

bool hd_kernel_has_process_fds(void)
{
    int fd = hd_process_fd(getpid());
    if (fd >= 0) close(fd);
    return fd >= 0;
}

#if HD_HAS_LINUX
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "uring_ring.h"

bool hd_kernel_has_fine_timers(void)
{
#ifdef SYS_epoll_pwait2
    return syscall(SYS_epoll_pwait2, -1, NULL, 0, NULL, NULL, (size_t)0) < 0 && errno != ENOSYS && errno != EPERM;
#else
    return false;
#endif
}

bool hd_kernel_has_deferred_work(void)
{
    return uring_ring_can_defer_work();
}
#else
bool hd_kernel_has_fine_timers(void)
{
    return false;
}

bool hd_kernel_has_deferred_work(void)
{
    return false;
}
#endif
