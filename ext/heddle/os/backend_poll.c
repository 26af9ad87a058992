/* THE POLL BACKEND: poll(2), for systems and sandboxes that have neither io_uring nor epoll.
 *
 * Way: the interests are in a list, in order of arrival. Each poll makes the array of poll(2) from this list, and each
 * reap looks at both, side by side. Nothing is left in the kernel between two polls. Price: a poll takes time for every
 * descriptor for which a fiber waits, and timers are as fine as a millisecond. Source: poll(2). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/interest.h"
#include "backends.h"
#include "wakeup.h"

enum { INITIAL_SLOTS = 64, SLOTS_PER_PART = 32, MUTE_MS = 20 };

/* The token of an interest is its slot in the last poll, or NEW, or, after a hang-up that it does not want, MUTED. */
static const uint64_t NEW = UINT64_MAX, MUTED = UINT64_MAX - 1;

struct hd_backend {
    hd_wakeup wakeup;
    hd_list interests;
    int used;     /* slots: one for the wake-up, then one for each interest */
    int polled;   /* slots that the last poll has answered; 0: none */
    int capacity; /* slots: enough for all interests */
    int64_t muted_until_ns; /* 0: no interest has been muted since the last poll for all */
    struct pollfd *slots;
};

static int poll_probe(char *reason, int reason_size)
{
    (void)reason, (void)reason_size;
    return 0;
}

static void poll_close(hd_backend *backend)
{
    hd_wakeup_close(&backend->wakeup);
    free(backend->slots);
    free(backend);
}

static int poll_open(hd_backend **result, bool pinned)
{
    (void)pinned;
    hd_backend *backend = calloc(1, sizeof(*backend));
    if (!backend) return -ENOMEM;
    hd_list_init(&backend->interests);
    backend->used = 1;
    int error = hd_wakeup_open(&backend->wakeup);
    if (error) poll_close(backend);
    if (!error) *result = backend;
    return error;
}

static int poll_arm(hd_backend *backend, hd_interest *interest)
{
    if (interest->fd < 0) return -EBADF;
    if (backend->used >= backend->capacity) {
        int capacity = backend->capacity ? 2 * backend->capacity : INITIAL_SLOTS;
        struct pollfd *slots = realloc(backend->slots, (size_t)capacity * sizeof(*slots));
        if (!slots) return -ENOMEM;
        backend->slots = slots;
        backend->capacity = capacity;
    }
    backend->used++;
    hd_list_push_back(&backend->interests, &interest->fd_node);
    interest->token = NEW;
    return 0;
}

static void poll_disarm(hd_backend *backend, hd_interest *interest)
{
    hd_node_remove(&interest->fd_node);
    backend->used--;
}

static void poll_release_files(hd_backend *backend)
{
    (void)backend; /* the kernel has files only during a poll */
}

/* Fills the slots. Has it left out muted interests? A hang-up stays, and would end each poll at once. */
static bool fill_slots(hd_backend *backend)
{
    bool muted = false, all = backend->muted_until_ns && hd_clock_machine() >= backend->muted_until_ns;
    if (all) backend->muted_until_ns = 0;
    struct pollfd *slot = backend->slots;
    *slot = (struct pollfd){.fd = backend->wakeup.fd.number, .events = POLLIN};
    for (hd_node *node = hd_list_first(&backend->interests); node; node = hd_list_after(&backend->interests, node)) {
        hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, fd_node);
        bool skip = interest->token == MUTED && !all;
        *++slot = (struct pollfd){.fd = skip ? -1 : interest->fd, .events = interest->events};
        interest->token = skip ? MUTED : (uint64_t)(slot - backend->slots);
        muted |= skip;
    }
    return muted;
}

/* Looks every millisecond: poll(2) refuses more slots than the process may have files open. */
static int look_in_parts(const hd_backend *backend, bool sleeps)
{
    int found = 0;
    for (int first = 0; first < backend->used; first += SLOTS_PER_PART) {
        int left = backend->used - first;
        int ready = poll(&backend->slots[first], (nfds_t)(left < SLOTS_PER_PART ? left : SLOTS_PER_PART), 0);
        if (ready > 0) found += ready;
    }
    if (!found && sleeps) nanosleep(&(struct timespec){.tv_nsec = HD_NS_PER_MS}, NULL);
    return found;
}

static void poll_poll_nogvl(hd_backend *backend, int64_t timeout_ns, bool watches)
{
    if (timeout_ns != 0 && hd_wakeup_was_signalled(&backend->wakeup)) timeout_ns = 0;
    watches = backend->used > 1;
    if (!watches && timeout_ns != 0) hd_wakeup_sleep(&backend->wakeup, timeout_ns);
    if (!watches) return;
    int timeout_ms = hd_clock_timeout_ms(timeout_ns);
    if (fill_slots(backend) && (timeout_ms < 0 || timeout_ms > MUTE_MS)) timeout_ms = MUTE_MS;
    int found = poll(backend->slots, (nfds_t)backend->used, timeout_ms);
    if (found < 0 && errno == EINVAL) found = look_in_parts(backend, timeout_ms != 0);
    if (timeout_ns != 0) hd_wakeup_note_awake(&backend->wakeup);
    backend->polled = found > 0 ? backend->used : 0; /* EINTR: the caller looks for interrupts and polls again */
    if (found > 0 && backend->slots[0].revents) hd_wakeup_clear(&backend->wakeup);
}

static void poll_reap(hd_backend *backend)
{
    hd_node *node = backend->polled ? hd_list_first(&backend->interests) : NULL;
    while (node) {
        hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, fd_node);
        node = hd_list_after(&backend->interests, node);
        short revents = interest->token < (uint64_t)backend->polled ? backend->slots[interest->token].revents : 0;
        if (!revents) continue;
        if (hd_interest_ready(interest, revents)) {
            poll_disarm(backend, interest);
            hd_interest_deliver(interest, revents);
        } else {
            interest->token = MUTED;
            if (!backend->muted_until_ns) backend->muted_until_ns = hd_clock_machine() + MUTE_MS * HD_NS_PER_MS;
        }
    }
    backend->polled = 0;
}

static void poll_wake(hd_backend *backend)
{
    hd_wakeup_signal(&backend->wakeup);
}

static bool poll_rest(hd_backend *backend)
{
    backend->polled = 0;
    return true;
}

const hd_backend_ops hd_backend_poll = {.name = "poll", .probe = poll_probe, .open = poll_open, .close = poll_close,
                                        .arm = poll_arm, .disarm = poll_disarm, .release_files = poll_release_files,
                                        .poll_nogvl = poll_poll_nogvl, .reap = poll_reap, .wake = poll_wake,
                                        .rest = poll_rest};
