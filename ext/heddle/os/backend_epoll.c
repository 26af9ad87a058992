/* THE EPOLL BACKEND: one one-shot registration for each descriptor, armed again at every wait, and shared by all
 * fibers that wait on that descriptor.
 *
 * Problem: epoll knows a registration by file and descriptor number. It forgets the registration when the last
 * descriptor of the file is closed, also by code that we never see (a C library that closes its own socket). Way:
 * every wait arms the registration anew: MOD first, then ADD if the kernel does not know it any longer. An event
 * carries the number and its generation, so an event of an earlier arm (the file is still open in a dup or a child)
 * is recognised and dropped.
 *
 * Rejected: to leave a registration armed. If it was forgotten while we believed it armed, a fiber would wait for
 * ever. Price: one epoll_ctl for each wait.
 *
 * Sources: epoll(7), epoll_ctl(2). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/interest.h"
#include "backends.h"
#include "fork.h"
#include "wakeup.h"

enum { EVENTS_PER_POLL = 256, INITIAL_FDS = 64 };

_Static_assert(EPOLLIN == POLLIN && EPOLLPRI == POLLPRI && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
                   EPOLLHUP == POLLHUP,
               "epoll's events have poll's values");

typedef struct {
    hd_list interests; /* the interests in this number, in order of arrival */
    uint32_t generation;
    uint16_t events;  /* the events of the registration: the union of its interests, or more */
    bool registered;  /* the kernel had a registration at our last look */
    bool edge;        /* it reports changes, and goes on after the first (else: one-shot) */
} fd_entry;

struct hd_backend {
    hd_private_fd epoll_fd;
    hd_wakeup wakeup;
    int found; /* the number of events that the last poll has stored */
    bool no_pwait2;
    fd_entry *fds;
    int fds_count;
    struct epoll_event events[EVENTS_PER_POLL];
};

static const uint64_t WAKE_TOKEN = UINT64_MAX;

static int epoll_probe(char *reason, int reason_size)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        snprintf(reason, reason_size, "epoll_create1: %s", strerror(error));
        return -error;
    }
    close(fd);
    return 0;
}

static void epoll_close(hd_backend *backend)
{
    hd_wakeup_close(&backend->wakeup);
    hd_private_fd_close(&backend->epoll_fd);
    free(backend->fds);
    free(backend);
}

static int epoll_open(hd_backend **result, bool pinned)
{
    (void)pinned;
    hd_backend *backend = calloc(1, sizeof(*backend));
    if (!backend) return -ENOMEM;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    int error = fd < 0 ? -errno : 0;
    if (!error) {
        hd_private_fd_own(&backend->epoll_fd, fd);
        error = hd_wakeup_open(&backend->wakeup);
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = WAKE_TOKEN};
    if (!error && epoll_ctl(fd, EPOLL_CTL_ADD, backend->wakeup.fd.number, &event) < 0) error = -errno;
    if (error) {
        epoll_close(backend);
        return error;
    }
    *result = backend;
    return 0;
}

static int reserve(hd_backend *backend, int fd)
{
    if (fd < backend->fds_count) return 0;
    int count = backend->fds_count ? backend->fds_count : INITIAL_FDS;
    while (count <= fd) count *= 2;
    fd_entry *fds = malloc(count * sizeof(*fds));
    if (!fds) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        fds[i] = i < backend->fds_count ? backend->fds[i] : (fd_entry){.registered = false};
        hd_list_init(&fds[i].interests);
        if (i < backend->fds_count) hd_list_move(&fds[i].interests, &backend->fds[i].interests);
    }
    free(backend->fds);
    backend->fds = fds;
    backend->fds_count = count;
    return 0;
}

static int control(hd_backend *backend, fd_entry *entry, int fd, struct epoll_event *event)
{
    if (entry->registered && epoll_ctl(backend->epoll_fd.number, EPOLL_CTL_MOD, fd, event) == 0) return 0;
    if (entry->registered && errno != ENOENT) return -errno;
    entry->registered = true;
    if (epoll_ctl(backend->epoll_fd.number, EPOLL_CTL_ADD, fd, event) == 0) return 0;
    if (errno == EEXIST && epoll_ctl(backend->epoll_fd.number, EPOLL_CTL_MOD, fd, event) == 0) return 0;
    int error = -errno;
    entry->registered = false;
    return error;
}

static int arm_for(hd_backend *backend, int fd, uint16_t events, bool edge)
{
    fd_entry *entry = &backend->fds[fd];
    struct epoll_event event = {.events = (uint32_t)events | (edge ? EPOLLET : EPOLLONESHOT),
                                .data.u64 = (uint64_t)(entry->generation + 1) << 32 | (uint32_t)fd};
    int error = control(backend, entry, fd, &event);
    if (error) return error; /* a failed arm leaves the events of the registration valid */
    entry->generation++;
    entry->events = events;
    entry->edge = edge;
    return 0;
}

/* Arms the descriptor for the union of its interests. */
static int arm_for_all(hd_backend *backend, int fd, bool edge)
{
    hd_list *interests = &backend->fds[fd].interests;
    uint16_t events = 0;
    for (hd_node *node = hd_list_first(interests); node; node = hd_list_after(interests, node))
        events |= (uint16_t)HD_CONTAINER_OF(node, hd_interest, fd_node)->events;
    return arm_for(backend, fd, events, edge);
}

/* Ends the edge-triggered registration of a descriptor for which nobody waits any longer. */
static void end_edge(hd_backend *backend, int fd)
{
    fd_entry *entry = &backend->fds[fd];
    epoll_ctl(backend->epoll_fd.number, EPOLL_CTL_DEL, fd, NULL);
    entry->registered = entry->edge = false;
}

static int epoll_arm(hd_backend *backend, hd_interest *interest)
{
    if (interest->fd < 0) return -EBADF;
    int error = reserve(backend, interest->fd);
    if (error) return error;
    fd_entry *entry = &backend->fds[interest->fd];
    /* The registration already covers the interests of the list, so it need not be walked: it may be long. */
    uint16_t armed = hd_list_empty(&entry->interests) ? 0 : entry->events;
    error = arm_for(backend, interest->fd, armed | (uint16_t)interest->events, false);
    if (error) return error;
    hd_list_push_back(&entry->interests, &interest->fd_node);
    interest->token = 1;
    return 0;
}

/* Takes an interest back. A one-shot registration stays armed: at most one event arrives for which nobody waits, and
 * that event ends it. */
static void epoll_disarm(hd_backend *backend, hd_interest *interest)
{
    const fd_entry *entry = &backend->fds[interest->fd];
    hd_node_remove(&interest->fd_node);
    if (entry->edge && hd_list_empty(&entry->interests)) end_edge(backend, interest->fd);
}

static void epoll_release_files(hd_backend *backend)
{
    (void)backend; /* epoll holds no reference to a file */
}

static int wait_events(hd_backend *backend, int64_t timeout_ns)
{
#ifdef SYS_epoll_pwait2
    if (!backend->no_pwait2 && timeout_ns != 0) { /* Linux 5.11; nanoseconds, so no rounding */
        struct timespec timeout = {timeout_ns / HD_NS_PER_SECOND, timeout_ns % HD_NS_PER_SECOND};
        int found = (int)syscall(SYS_epoll_pwait2, backend->epoll_fd.number, backend->events, EVENTS_PER_POLL,
                                 timeout_ns == HD_NO_DEADLINE ? NULL : &timeout, NULL, (size_t)0);
        if (found >= 0 || (errno != ENOSYS && errno != EPERM)) return found;
        backend->no_pwait2 = true;
    }
#endif
    int timeout_ms = hd_clock_timeout_ms(timeout_ns);
    return epoll_wait(backend->epoll_fd.number, backend->events, EVENTS_PER_POLL, timeout_ms);
}

static void epoll_poll_nogvl(hd_backend *backend, int64_t timeout_ns, bool watches)
{
    if (timeout_ns != 0 && hd_wakeup_was_signalled(&backend->wakeup)) timeout_ns = 0;
    if (!watches) {
        if (timeout_ns != 0) hd_wakeup_sleep(&backend->wakeup, timeout_ns);
        return;
    }
    int found = wait_events(backend, timeout_ns);
    if (timeout_ns != 0) hd_wakeup_note_awake(&backend->wakeup);
    backend->found = found < 0 ? 0 : found; /* EINTR: the caller looks for interrupts and polls again */
}

static void deliver(hd_backend *backend, int fd, short revents)
{
    fd_entry *entry = &backend->fds[fd];
    hd_node *node = hd_list_first(&entry->interests);
    while (node) {
        hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, fd_node);
        node = hd_list_after(&entry->interests, node);
        if (!hd_interest_ready(interest, revents)) continue;
        hd_node_remove(&interest->fd_node);
        hd_interest_deliver(interest, revents);
    }
    bool left = !hd_list_empty(&entry->interests), edge = entry->edge;
    if (!left && edge) end_edge(backend, fd);
    /* The kernel always reports an error or a hang-up. For an interest that selects without asking for these, a
     * one-shot registration would report them without end. So from then on it is edge-triggered. */
    if (left && !edge && arm_for_all(backend, fd, revents & (EPOLLERR | EPOLLHUP)) < 0) {
        while ((node = hd_list_first(&entry->interests))) { /* the descriptor was closed while fibers waited */
            hd_node_remove(node);
            hd_interest_deliver(HD_CONTAINER_OF(node, hd_interest, fd_node), POLLNVAL);
        }
    }
}

static void epoll_reap(hd_backend *backend)
{
    int found = backend->found;
    backend->found = 0;
    for (int i = 0; i < found; i++) {
        uint64_t token = backend->events[i].data.u64;
        if (token == WAKE_TOKEN) continue; /* nothing to read: with EPOLLET every write of an eventfd is reported */
        int fd = (int)(uint32_t)token;
        if (fd < backend->fds_count && backend->fds[fd].generation == token >> 32)
            deliver(backend, fd, (short)backend->events[i].events);
    }
}

static void epoll_wake(hd_backend *backend)
{
    hd_wakeup_signal(&backend->wakeup);
}

/* A registration that remains does no harm: its event is recognised by its generation. */
static bool epoll_rest(hd_backend *backend)
{
    backend->found = 0;
    return true;
}

const hd_backend_ops hd_backend_epoll = {
    .name = "epoll",
    .probe = epoll_probe,
    .open = epoll_open,
    .close = epoll_close,
    .arm = epoll_arm,
    .disarm = epoll_disarm,
    .release_files = epoll_release_files,
    .poll_nogvl = epoll_poll_nogvl,
    .reap = epoll_reap,
    .wake = epoll_wake,
    .rest = epoll_rest,
};
