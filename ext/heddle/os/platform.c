/* See platform.h. First the calls that every system has in some form, then those of Linux alone. */
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#if HD_HAS_LINUX
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#elif defined(__APPLE__) && !defined(F_OFD_GETLK)
#define F_OFD_GETLK 92 /* the kernel has it, older SDKs hide it */
#endif

/* -- calls that every system has ---------------------------------------------------------------------------------- */

/* Another thread may fork and exec before this, and its program then has the descriptor. */
static int make_private(int fd)
{
    bool made = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
    return made ? 0 : -errno;
}

int hd_pipe(int ends[2])
{
    if (pipe(ends) < 0) return -errno;
    int error = make_private(ends[0]);
    if (!error) error = make_private(ends[1]);
    if (error) {
        close(ends[0]);
        close(ends[1]);
    }
    return error;
}

int hd_accept(int fd)
{
    int accepted;
    do {
#if HD_HAS_LINUX
        accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
#else
        accepted = accept(fd, NULL, NULL);
#endif
    } while (accepted < 0 && errno == EINTR);
    if (accepted < 0) return -errno;
    int error = HD_HAS_LINUX ? 0 : make_private(accepted);
    if (error) close(accepted);
    return error ? error : accepted;
}

bool hd_may_have_record_locks(int fd)
{
#ifdef F_OFD_GETLK
    /* The kernel takes the caller for another owner here. F_GETLK would not tell of the locks of this process. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
#else
    (void)fd;
    return true;
#endif
}

/* -- calls of Linux ----------------------------------------------------------------------------------------------- */

#if HD_HAS_LINUX

static ssize_t result_of(ssize_t result)
{
    return result < 0 ? -errno : result;
}

#ifndef RWF_NOWAIT
/* musl has these calls from 1.2.5 on. The kernel joins the offset from two words, and a kernel of 64 bits ignores the
 * second one. */
#define RWF_NOWAIT 0x8
#define preadv2(fd, vector, count, offset, flags)                                                                      \
    syscall(SYS_preadv2, fd, vector, count, (long)(offset), (long)((uint64_t)(offset) >> 32), flags)
#define pwritev2(fd, vector, count, offset, flags)                                                                     \
    syscall(SYS_pwritev2, fd, vector, count, (long)(offset), (long)((uint64_t)(offset) >> 32), flags)
#endif

ssize_t hd_read_now(int fd, void *bytes, size_t size, off_t offset)
{
    struct iovec vector = {bytes, size};
    return result_of(preadv2(fd, &vector, 1, offset, RWF_NOWAIT));
}

ssize_t hd_write_now(int fd, void *bytes, size_t size, off_t offset)
{
    struct iovec vector = {bytes, size};
    return result_of(pwritev2(fd, &vector, 1, offset, RWF_NOWAIT));
}

/* RESOLVE_CACHED is from Linux 5.12. */
static int open_cached(const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    return (int)result_of(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

int hd_open_cached(const char *path)
{
    return open_cached(path, O_RDONLY);
}

int hd_look_up_cached(const char *path)
{
    return open_cached(path, O_PATH);
}

/* The master of a terminal cannot be opened again: that would be a new terminal. */
int hd_open_again(int fd, int flags)
{
    char path[32];
    int number;
    if (ioctl(fd, TIOCGPTN, &number) == 0) return -ENOTTY;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return (int)result_of(open(path, flags | O_NOCTTY | O_CLOEXEC));
}

ssize_t hd_send_file(int to, int from, off_t *position, size_t size)
{
    return result_of(sendfile(to, from, position, size));
}

#else

ssize_t hd_read_now(int fd, void *bytes, size_t size, off_t offset)
{
    (void)fd, (void)bytes, (void)size, (void)offset;
    return -ENOSYS;
}

ssize_t hd_write_now(int fd, void *bytes, size_t size, off_t offset)
{
    (void)fd, (void)bytes, (void)size, (void)offset;
    return -ENOSYS;
}

int hd_open_cached(const char *path)
{
    (void)path;
    return -ENOSYS;
}

int hd_look_up_cached(const char *path)
{
    (void)path;
    return -ENOSYS;
}

/* A path in /dev/fd leads to the same open file of a BSD, with the same mode. */
int hd_open_again(int fd, int flags)
{
    (void)fd, (void)flags;
    return -ENOSYS;
}

ssize_t hd_send_file(int to, int from, off_t *position, size_t size)
{
    (void)to, (void)from, (void)position, (void)size;
    return -ENOSYS;
}

#endif
