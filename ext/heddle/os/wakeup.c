/* See wakeup.h. */
#include "wakeup.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* AWAKE: the poll does not sleep, or it sleeps in the kernel's watch. */
enum { AWAKE, ON_FUTEX, SIGNALLED };

int hd_wakeup_open(hd_wakeup *wakeup)
{
    int number = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (number < 0) return -errno;
    hd_private_fd_own(&wakeup->fd, number);
    return 0;
}

void hd_wakeup_close(hd_wakeup *wakeup)
{
    hd_private_fd_close(&wakeup->fd);
}

static void write_eventfd(const hd_wakeup *wakeup)
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(wakeup->fd.number, &one, sizeof(one));
    } while (written < 0 && errno == EINTR); /* EAGAIN: the counter is full, so it is signalled already */
}

void hd_wakeup_signal(hd_wakeup *wakeup)
{
    int saved = errno;
    int before = __atomic_exchange_n(&wakeup->state, SIGNALLED, __ATOMIC_SEQ_CST);
    if (before == ON_FUTEX)
        syscall(SYS_futex, &wakeup->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    else if (before == AWAKE)
        write_eventfd(wakeup);
    errno = saved;
}

bool hd_wakeup_was_signalled(hd_wakeup *wakeup)
{
    return __atomic_exchange_n(&wakeup->state, AWAKE, __ATOMIC_SEQ_CST) == SIGNALLED;
}

void hd_wakeup_sleep(hd_wakeup *wakeup, int64_t timeout_ns)
{
    struct timespec timeout = {timeout_ns / HD_NS_PER_SECOND, timeout_ns % HD_NS_PER_SECOND};
    int expected = AWAKE;
    if (__atomic_compare_exchange_n(&wakeup->state, &expected, ON_FUTEX, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &wakeup->state, FUTEX_WAIT_PRIVATE, ON_FUTEX,
                timeout_ns == HD_NO_DEADLINE ? NULL : &timeout, NULL, 0);
    hd_wakeup_note_awake(wakeup);
}

/* An exchange, not a store: when it overwrites a signal, it has to see what was written before that signal. */
void hd_wakeup_note_awake(hd_wakeup *wakeup)
{
    __atomic_exchange_n(&wakeup->state, AWAKE, __ATOMIC_SEQ_CST);
}

void hd_wakeup_clear(const hd_wakeup *wakeup)
{
    uint64_t count;
    while (read(wakeup->fd.number, &count, sizeof(count)) < 0 && errno == EINTR) continue;
}
