/* THE KQUEUE BACKEND: kevents that report once, for macOS and the BSDs.
 *
 * Problem: a kevent says that a descriptor is ready, but not in the words of poll(2), and these differ from system to
 * system at hang-ups, errors and urgent data. Ruby itself asks poll(2). Way: a kevent only says where to look. Each
 * reap asks poll(2) about all descriptors of its kevents at once, and delivers what poll(2) says. Price: one system
 * call more for each reap that has found something.
 *
 * Some waits have no kevent that ends them: urgent data, a hang-up that stays although the interest does not want it,
 * and devices that kqueue does not know. Their descriptors are slow: poll(2) looks at them every SLOW_MS.
 *
 * A kevent belongs to a number, and goes when that descriptor is closed. A kevent of an earlier wait is recognised by
 * its generation.
 *
 * Sources: kqueue(2) of FreeBSD, OpenBSD, NetBSD and macOS. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h> /* before the next one, as the manuals have it */
#include <sys/event.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/interest.h"
#include "backends.h"
#include "fork.h"

enum { EVENTS_PER_POLL = 256, INITIAL_FDS = 64, SLOW_MS = 20 };
enum { ARMED = 1, SLOW }; /* tokens of interests */

typedef struct {
    hd_list interests; /* the interests in this number, in order of arrival */
    uint32_t generation;
    short armed; /* POLLIN, POLLOUT: its kevents that have not come yet */
    bool slow;   /* poll(2) looks at it from time to time */
} fd_entry;

struct hd_backend {
    hd_private_fd kqueue_fd;
    int found;      /* the number of kevents that the last poll has stored */
    int slow_count; /* of descriptors */
    int64_t slow_at_ns; /* the time of the next look; 0: at once */
    fd_entry *fds;
    int fds_count;
    struct kevent events[EVENTS_PER_POLL];
    struct pollfd looks[EVENTS_PER_POLL];
};

/* Makes one change. EINTR may come after it was made, and to make it again does no harm. */
static int change(int kqueue_fd, int ident, short filter, unsigned short flags, unsigned fflags, uint32_t generation)
{
    struct kevent event;
    EV_SET(&event, (uintptr_t)ident, filter, flags, fflags, 0, (void *)(uintptr_t)generation);
    int result;
    do {
        result = kevent(kqueue_fd, &event, 1, NULL, 0, NULL);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : 0;
}

static int kqueue_probe(char *reason, int reason_size)
{
    int fd = kqueue();
    if (fd < 0) {
        int error = errno;
        snprintf(reason, (size_t)reason_size, "kqueue: %s", strerror(error));
        return -error;
    }
    close(fd);
    return 0;
}

static void kqueue_close(hd_backend *backend)
{
    hd_private_fd_close(&backend->kqueue_fd);
    free(backend->fds);
    free(backend);
}

static int kqueue_open(hd_backend **result, bool pinned)
{
    (void)pinned;
    hd_backend *backend = calloc(1, sizeof(*backend));
    if (!backend) return -ENOMEM;
    int fd = kqueue();
    int error = fd < 0 ? -errno : 0;
    if (!error) {
        hd_private_fd_own(&backend->kqueue_fd, fd);
        error = change(fd, 0, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0);
    }
    if (error) kqueue_close(backend);
    if (!error) *result = backend;
    return error;
}

static int reserve(hd_backend *backend, int fd)
{
    if (fd < backend->fds_count) return 0;
    int count = backend->fds_count ? backend->fds_count : INITIAL_FDS;
    while (count <= fd) count *= 2;
    fd_entry *fds = malloc((size_t)count * sizeof(*fds));
    if (!fds) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        fds[i] = i < backend->fds_count ? backend->fds[i] : (fd_entry){.slow = false};
        hd_list_init(&fds[i].interests);
        if (i < backend->fds_count) hd_list_move(&fds[i].interests, &backend->fds[i].interests);
    }
    free(backend->fds);
    backend->fds = fds;
    backend->fds_count = count;
    return 0;
}

static void set_slow(hd_backend *backend, fd_entry *entry, bool slow)
{
    if (slow == entry->slow) return;
    entry->slow = slow;
    backend->slow_count += slow ? 1 : -1;
}

static short filter_of(short event)
{
    return event == POLLIN ? EVFILT_READ : EVFILT_WRITE;
}

/* Arms the kevent of POLLIN or POLLOUT, if it is among these events. */
static int arm_event(hd_backend *backend, int fd, short event, short events)
{
    fd_entry *entry = &backend->fds[fd];
    if (!(events & event)) return 0;
    int error = change(backend->kqueue_fd.number, fd, filter_of(event), EV_ADD | EV_ONESHOT, 0, entry->generation);
    if (!error) entry->armed |= event;
    return error;
}

/* Arms the kevents of these events. A device that kqueue does not know is slow. */
static int arm_events(hd_backend *backend, int fd, short events)
{
    fd_entry *entry = &backend->fds[fd];
    int error = arm_event(backend, fd, POLLIN, events);
    if (!error) error = arm_event(backend, fd, POLLOUT, events);
    if (error == -EBADF || error == -ENOMEM) return error;
    if (error || events & POLLPRI) set_slow(backend, entry, true);
    return 0;
}

static int kqueue_arm(hd_backend *backend, hd_interest *interest)
{
    struct stat about; /* kqueue(2) reports a file only before its end; poll(2) says that it is always ready */
    if (fstat(interest->fd, &about) < 0) return -errno;
    if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return -EPERM;
    int error = reserve(backend, interest->fd);
    if (error) return error;
    fd_entry *entry = &backend->fds[interest->fd];
    if (hd_list_empty(&entry->interests)) entry->generation++;
    error = arm_events(backend, interest->fd, interest->events);
    if (error) return error;
    if (entry->slow) backend->slow_at_ns = 0;
    hd_list_push_back(&entry->interests, &interest->fd_node);
    interest->token = ARMED;
    return 0;
}

/* Ends the wait of the kernel for a number that nobody waits for any longer. */
static void end_entry(hd_backend *backend, int fd)
{
    fd_entry *entry = &backend->fds[fd];
    set_slow(backend, entry, false);
    for (short event = POLLIN; event <= POLLOUT; event += POLLOUT - POLLIN)
        if (entry->armed & event) change(backend->kqueue_fd.number, fd, filter_of(event), EV_DELETE, 0, 0);
    entry->armed = 0;
}

static void kqueue_disarm(hd_backend *backend, hd_interest *interest)
{
    hd_node_remove(&interest->fd_node);
    if (hd_list_empty(&backend->fds[interest->fd].interests)) end_entry(backend, interest->fd);
}

static void kqueue_release_files(hd_backend *backend)
{
    (void)backend; /* a kqueue holds no reference to a file */
}

static void kqueue_poll_nogvl(hd_backend *backend, int64_t timeout_ns, bool watches)
{
    (void)watches;
    if (backend->slow_count > 0 && timeout_ns > 0) {
        int64_t left_ns = backend->slow_at_ns ? backend->slow_at_ns - hd_clock_machine() : 0;
        timeout_ns = hd_earlier(timeout_ns, left_ns > 0 ? left_ns : 0);
    }
    struct timespec timeout = {timeout_ns / HD_NS_PER_SECOND, timeout_ns % HD_NS_PER_SECOND};
    int found = kevent(backend->kqueue_fd.number, NULL, 0, backend->events, EVENTS_PER_POLL,
                       timeout_ns == HD_NO_DEADLINE ? NULL : &timeout);
    backend->found = found < 0 ? 0 : found; /* EINTR: the caller looks for interrupts and polls again */
}

/* Delivers what poll(2) says of a descriptor, and arms again for the interests that go on. */
static void deliver(hd_backend *backend, int fd, short revents)
{
    fd_entry *entry = &backend->fds[fd];
    bool lasting = revents & (POLLHUP | POLLERR), slow = false;
    short events = 0;
    hd_node *node = hd_list_first(&entry->interests);
    while (node) {
        hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, fd_node);
        node = hd_list_after(&entry->interests, node);
        if (hd_interest_ready(interest, revents)) {
            hd_node_remove(&interest->fd_node);
            hd_interest_deliver(interest, revents);
            continue;
        }
        if (lasting) interest->token = SLOW;
        slow |= interest->token == SLOW || interest->events & POLLPRI;
        if (interest->token != SLOW) events |= interest->events;
    }
    set_slow(backend, entry, slow);
    if (hd_list_empty(&entry->interests)) end_entry(backend, fd);
    if (hd_list_empty(&entry->interests) || arm_events(backend, fd, events) == 0) return;
    while ((node = hd_list_first(&entry->interests))) { /* the descriptor was closed while fibers waited */
        hd_node_remove(node);
        hd_interest_deliver(HD_CONTAINER_OF(node, hd_interest, fd_node), POLLNVAL);
    }
}

/* Asks poll(2) about these descriptors, and delivers its answers. */
static void look(hd_backend *backend, int count)
{
    if (count == 0 || poll(backend->looks, (nfds_t)count, 0) < 0)
        for (int i = 0; i < count; i++) backend->looks[i].revents = POLLIN | POLLOUT; /* whoever waits tries it */
    for (int i = 0; i < count; i++) deliver(backend, backend->looks[i].fd, backend->looks[i].revents);
}

static int add_look(hd_backend *backend, int count, int fd)
{
    if (count == EVENTS_PER_POLL) {
        look(backend, count);
        count = 0;
    }
    short events = POLLIN | POLLOUT | POLLPRI;
    backend->looks[count] = (struct pollfd){.fd = fd, .events = events};
    return count + 1;
}

static void kqueue_reap(hd_backend *backend)
{
    int found = backend->found, count = 0;
    backend->found = 0;
    for (int i = 0; i < found; i++) {
        const struct kevent *event = &backend->events[i];
        int fd = (int)event->ident;
        if (event->filter == EVFILT_USER || fd >= backend->fds_count) continue;
        if (backend->fds[fd].generation != (uint32_t)(uintptr_t)event->udata) continue;
        backend->fds[fd].armed &= event->filter == EVFILT_READ ? ~POLLIN : ~POLLOUT;
        count = add_look(backend, count, fd);
    }
    if (backend->slow_count > 0 && hd_clock_machine() >= backend->slow_at_ns) {
        backend->slow_at_ns = hd_clock_machine() + SLOW_MS * HD_NS_PER_MS;
        for (int fd = 0; fd < backend->fds_count; fd++)
            if (backend->fds[fd].slow) count = add_look(backend, count, fd);
    }
    look(backend, count);
}

static void kqueue_wake(hd_backend *backend)
{
    int saved = errno;
    change(backend->kqueue_fd.number, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0);
    errno = saved;
}

static bool kqueue_rest(hd_backend *backend)
{
    backend->found = 0;
    return true;
}

const hd_backend_ops hd_backend_kqueue = {
    .name = "kqueue",
    .probe = kqueue_probe,
    .open = kqueue_open,
    .close = kqueue_close,
    .arm = kqueue_arm,
    .disarm = kqueue_disarm,
    .release_files = kqueue_release_files,
    .poll_nogvl = kqueue_poll_nogvl,
    .reap = kqueue_reap,
    .wake = kqueue_wake,
    .rest = kqueue_rest,
};
