/* The eventfd of wakeup.h. */
#include "wakeup.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int hd_wakeup_open(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void hd_wakeup_signal(int fd)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR); /* EAGAIN: the counter is full, so it is signalled already */
    errno = saved;
}

void hd_wakeup_clear(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) continue;
}
