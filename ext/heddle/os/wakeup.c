/* See wakeup.h. */
#include "wakeup.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "core/clock.h"

#if HD_HAS_LINUX
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#else
#include <poll.h>
#endif

/* AWAKE: the poll does not sleep, or it sleeps on a descriptor. */
enum { AWAKE, ON_FUTEX, SIGNALLED };

/* -- the descriptor ----------------------------------------------------------------------------------------------- */

#if HD_HAS_LINUX

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

static int writer_of(const hd_wakeup *wakeup)
{
    return wakeup->fd.number;
}

#else

int hd_wakeup_open(hd_wakeup *wakeup)
{
    int ends[2], error = hd_pipe(ends);
    if (error) return error;
    hd_private_fd_own(&wakeup->fd, ends[0]);
    hd_private_fd_own(&wakeup->writer, ends[1]);
    return 0;
}

void hd_wakeup_close(hd_wakeup *wakeup)
{
    hd_private_fd_close(&wakeup->fd);
    hd_private_fd_close(&wakeup->writer);
}

static int writer_of(const hd_wakeup *wakeup)
{
    return wakeup->writer.number;
}

#endif

/* EAGAIN: the descriptor is full, so it is signalled already. */
static void write_signal(const hd_wakeup *wakeup)
{
    uint64_t one = 1;
    while (write(writer_of(wakeup), &one, sizeof(one)) < 0 && errno == EINTR) continue;
}

/* One read empties an eventfd, but perhaps not a pipe. */
void hd_wakeup_clear(const hd_wakeup *wakeup)
{
    uint64_t counts[64];
    ssize_t got;
    do {
        got = read(wakeup->fd.number, counts, sizeof(counts));
    } while (got == sizeof(counts) || (got < 0 && errno == EINTR));
}

/* -- the sleep ---------------------------------------------------------------------------------------------------- */

#if HD_HAS_LINUX

static void sleep_here(hd_wakeup *wakeup, int64_t timeout_ns)
{
    struct timespec timeout = {timeout_ns / HD_NS_PER_SECOND, timeout_ns % HD_NS_PER_SECOND};
    int expected = AWAKE;
    if (__atomic_compare_exchange_n(&wakeup->state, &expected, ON_FUTEX, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &wakeup->state, FUTEX_WAIT_PRIVATE, ON_FUTEX,
                timeout_ns == HD_NO_DEADLINE ? NULL : &timeout, NULL, 0);
}

static void end_sleep(hd_wakeup *wakeup)
{
    syscall(SYS_futex, &wakeup->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#else

static void sleep_here(hd_wakeup *wakeup, int64_t timeout_ns)
{
    struct pollfd slot = {.fd = wakeup->fd.number, .events = POLLIN};
    if (poll(&slot, 1, hd_clock_timeout_ms(timeout_ns)) > 0) hd_wakeup_clear(wakeup);
}

static void end_sleep(hd_wakeup *wakeup)
{
    (void)wakeup; /* it sleeps on the descriptor */
}

#endif

void hd_wakeup_sleep(hd_wakeup *wakeup, int64_t timeout_ns)
{
    sleep_here(wakeup, timeout_ns);
    hd_wakeup_note_awake(wakeup);
}

void hd_wakeup_signal(hd_wakeup *wakeup)
{
    int saved = errno;
    int before = __atomic_exchange_n(&wakeup->state, SIGNALLED, __ATOMIC_SEQ_CST);
    if (before == ON_FUTEX)
        end_sleep(wakeup);
    else if (before == AWAKE)
        write_signal(wakeup);
    errno = saved;
}

bool hd_wakeup_was_signalled(hd_wakeup *wakeup)
{
    return __atomic_exchange_n(&wakeup->state, AWAKE, __ATOMIC_SEQ_CST) == SIGNALLED;
}

/* An exchange, not a store: when it overwrites a signal, it has to see what was written before that signal. */
void hd_wakeup_note_awake(hd_wakeup *wakeup)
{
    __atomic_exchange_n(&wakeup->state, AWAKE, __ATOMIC_SEQ_CST);
}
