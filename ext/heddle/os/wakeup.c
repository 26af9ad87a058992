/* The eventfd of wakeup.h. */
#include "wakeup.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int hd_wakeup_open(hd_private_fd *fd)
{
    int number = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (number < 0) return -errno;
    hd_private_fd_own(fd, number);
    return 0;
}

void hd_wakeup_signal(const hd_private_fd *fd)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd->number, &one, sizeof(one));
    } while (written < 0 && errno == EINTR); /* EAGAIN: the counter is full, so it is signalled already */
    errno = saved;
}

void hd_wakeup_clear(const hd_private_fd *fd)
{
    uint64_t count;
    while (read(fd->number, &count, sizeof(count)) < 0 && errno == EINTR) continue;
}
