/* THE IO_URING BACKEND: every interest is a one-shot request of the ring.
 *
 * Problem: with epoll each wait costs a system call to arm it, and each transfer another one. Way: all requests since
 * the last look at the kernel are submitted by the very call that waits, so arming costs no system call of its own. An
 * interest is a poll request, or moves its bytes itself. If it wants bytes, it is a read request, which waits for
 * readiness itself and reads into the ring's own memory (uring_buffers.h). Where the kernel cannot do that, or has no
 * buffer left, it becomes a poll request. If it has bytes to send, it is a send request, which sends a copy of them
 * (uring_outbox.h).
 *
 * A request carries a token (slot and generation), never a record's address. An interest that was disarmed has freed
 * its slot, and later reports of the kernel are recognised by their generation and dropped.
 *
 * Rejected: accept and connect as requests. They would save one system call of 0.3 to 0.5 us for each connection,
 * and an accepted socket could get lost when its request is taken back.
 *
 * Price: a poll request holds a reference to its file until it is removed (see uring_release_files). A read or a
 * send that is taken back must be waited for.
 *
 * Sources: io_uring_enter(2); guides/design.md, "Reads in the ring" and "Writes in the ring". */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/interest.h"
#include "backends.h"
#include "uring_buffers.h"
#include "uring_outbox.h"
#include "uring_ring.h"
#include "wakeup.h"

#ifndef IORING_RECVSEND_POLL_FIRST
#define IORING_RECVSEND_POLL_FIRST (1U << 0)
#endif

enum { RING_ENTRIES = 256, COMPLETIONS_MAX = RING_ENTRIES * 2, INITIAL_SLOTS = 64, TASK_WORK_ROUNDS_MAX = 64 };
enum { DROP_TURNS_MAX = 100, SUBMISSION_TURNS_MAX = 10000, SUBMISSION_TURN_US = 50 };
#define DROP_TURN_NS (10 * HD_NS_PER_MS)

static const uint64_t WAKE_TOKEN = UINT64_MAX, NO_TOKEN = UINT64_MAX - 1;
static const uint32_t NO_SLOT = UINT32_MAX;
static const uint64_t NO_POSITION = UINT64_MAX; /* of a file that has none */

typedef struct {
    hd_interest *interest; /* NULL when free */
    uint32_t generation;   /* odd while in use, so a token is never 0 */
    uint32_t next_free;
    unsigned request; /* the number of its entry in the ring */
    bool moves;   /* its request is a read or a send */
    bool dropped; /* nobody waits for its answer any longer */
    char *sends;  /* the bytes that are sent, or NULL */
} uring_slot;

struct hd_backend {
    uring_ring ring;
    hd_wakeup wakeup;
    bool wake_armed;
    unsigned requests; /* requests that the kernel has not finished, or was not given yet */
    unsigned moves; /* reads and sends among these */
    bool no_reads; /* this kernel has no such requests */
    uring_buffers buffers;
    uring_outbox outbox;
    bool removals; /* poll requests were removed since the last release of files */
    uring_slot *slots;
    uint32_t slots_count, free_slot;
};

static const char *reason_for(int error)
{
    switch (error) {
    case -ENOSYS: return "this kernel has no io_uring";
    case -EPERM: return "io_uring is switched off (sysctl kernel.io_uring_disabled, or seccomp in a container)";
    case -ENOMEM: return "not enough lockable memory (RLIMIT_MEMLOCK, ulimit -l)";
    case -EOPNOTSUPP: return "this kernel's io_uring is too old (5.11 is needed)";
    case -EMFILE: return "too many open files (ulimit -n)";
    default: return strerror(-error);
    }
}

static int uring_probe(char *reason, int reason_size)
{
    uring_ring ring;
    int error = uring_ring_open(&ring, RING_ENTRIES, false);
    if (error)
        snprintf(reason, reason_size, "io_uring_setup: %s", reason_for(error));
    else
        uring_ring_close(&ring);
    return error;
}

static void uring_close(hd_backend *backend)
{
    uring_buffers_close(&backend->buffers, &backend->ring, backend->moves > 0);
    uring_outbox_close(&backend->outbox, &backend->ring, backend->moves > 0);
    uring_ring_close(&backend->ring);
    hd_wakeup_close(&backend->wakeup);
    free(backend->slots);
    free(backend);
}

static int grow_slots(hd_backend *backend)
{
    uint32_t count = backend->slots_count ? backend->slots_count * 2 : INITIAL_SLOTS;
    uring_slot *slots = realloc(backend->slots, count * sizeof(*slots));
    if (!slots) return -ENOMEM;
    for (uint32_t i = backend->slots_count; i < count; i++)
        slots[i] = (uring_slot){.next_free = i + 1 < count ? i + 1 : NO_SLOT};
    backend->free_slot = backend->slots_count;
    backend->slots = slots;
    backend->slots_count = count;
    return 0;
}

static int uring_open(hd_backend **result, bool pinned)
{
    hd_backend *backend = calloc(1, sizeof(*backend));
    if (!backend) return -ENOMEM;
    backend->free_slot = NO_SLOT;
    int error = uring_ring_open(&backend->ring, RING_ENTRIES, pinned);
    if (!error) error = hd_wakeup_open(&backend->wakeup);
    if (error) {
        uring_close(backend);
        return error;
    }
    *result = backend;
    return 0;
}

static uint32_t acquire_slot(hd_backend *backend)
{
    if (backend->free_slot == NO_SLOT && grow_slots(backend) < 0) return NO_SLOT;
    uint32_t index = backend->free_slot;
    backend->free_slot = backend->slots[index].next_free;
    backend->slots[index].generation++;
    HD_ASSERT(backend->slots[index].generation & 1);
    return index;
}

static void release_slot(hd_backend *backend, uint32_t index)
{
    uring_slot *slot = &backend->slots[index];
    HD_ASSERT(slot->generation & 1);
    slot->generation++;
    slot->interest = NULL;
    slot->moves = slot->dropped = false;
    slot->sends = NULL;
    slot->next_free = backend->free_slot;
    backend->free_slot = index;
}

static struct io_uring_sqe *new_request(hd_backend *backend, uint64_t token)
{
    struct io_uring_sqe *sqe = uring_ring_sqe(&backend->ring);
    if (!sqe) return NULL;
    sqe->user_data = token;
    backend->requests++;
    if (token < NO_TOKEN) backend->slots[(uint32_t)token].request = uring_ring_last(&backend->ring);
    return sqe;
}

static bool prepare_poll(hd_backend *backend, int fd, unsigned events, unsigned flags, uint64_t token)
{
    struct io_uring_sqe *sqe = new_request(backend, token);
    if (!sqe) return false;
    sqe->opcode = IORING_OP_POLL_ADD;
    sqe->fd = fd;
    sqe->len = flags;
    sqe->poll32_events = events; /* x86 and arm64 are little-endian; big-endian machines swap the halves */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    sqe->poll32_events = events << 16 | events >> 16;
#endif
    return true;
}

/* Returns the events that a poll request must ask for. A poll for nothing but POLLPRI is never woken: io_uring has a
 * use of its own for the bit and leaves it out when it looks at a wake (IO_ASYNC_POLL_COMMON in the kernel's
 * io_uring/poll.c). A socket's wake for urgent data has POLLRDBAND too. So has the wake for any other data: see
 * complete(). */
static unsigned wake_events(short events)
{
    return (uint16_t)events | (events & POLLPRI ? POLLRDBAND : 0);
}

/* Can the read of this interest be a request? The memory for it is allocated at the first one. */
static bool is_read(hd_backend *backend, const hd_interest *interest)
{
    if (!interest->size || interest->bytes_to_send) return false;
    if (interest->size > URING_BUFFER_SIZE || backend->no_reads) return false;
    if (!backend->buffers.memory) backend->no_reads = uring_buffers_open(&backend->buffers, &backend->ring) < 0;
    return !backend->no_reads;
}

static bool prepare_read(hd_backend *backend, const hd_interest *interest, uint64_t token)
{
    struct io_uring_sqe *sqe = new_request(backend, token);
    if (!sqe) return false;
    sqe->opcode = interest->is_pipe ? IORING_OP_READ : IORING_OP_RECV;
    sqe->fd = interest->fd;
    sqe->len = (uint32_t)interest->size;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = URING_BUFFER_GROUP;
    if (interest->is_pipe)
        sqe->off = NO_POSITION;
    else if (interest->waits)
        sqe->ioprio = IORING_RECVSEND_POLL_FIRST;
    backend->moves++;
    return true;
}

/* Makes the request of a send. It has no MSG_DONTWAIT: when there is no room, the kernel waits for it. */
static bool prepare_send(hd_backend *backend, const hd_interest *interest, uint64_t token)
{
    struct io_uring_sqe *sqe = new_request(backend, token);
    if (!sqe) return false;
    char *copy = uring_outbox_copy(&backend->outbox, interest->bytes_to_send, interest->size);
    backend->slots[(uint32_t)token].sends = copy;
    sqe->opcode = interest->is_pipe ? IORING_OP_WRITE : IORING_OP_SEND;
    sqe->fd = interest->fd;
    sqe->addr = (uintptr_t)copy;
    sqe->len = (uint32_t)interest->size;
    if (interest->is_pipe)
        sqe->off = NO_POSITION;
    else
        sqe->msg_flags = MSG_NOSIGNAL;
    backend->moves++;
    return true;
}

static bool uring_can_send(hd_backend *backend, size_t size)
{
    return uring_outbox_has_room(&backend->outbox, size);
}

static bool prepare(hd_backend *backend, const hd_interest *interest, uint64_t token)
{
    uring_slot *slot = &backend->slots[(uint32_t)token];
    bool sends = interest->bytes_to_send && uring_can_send(backend, interest->size);
    slot->moves = sends || is_read(backend, interest);
    if (sends) return prepare_send(backend, interest, token);
    return slot->moves ? prepare_read(backend, interest, token)
                       : prepare_poll(backend, interest->fd, wake_events(interest->events), 0, token);
}

static int uring_arm(hd_backend *backend, hd_interest *interest)
{
    if (interest->fd < 0) return -EBADF;
    uint32_t index = acquire_slot(backend);
    if (index == NO_SLOT) return -ENOMEM;
    uint64_t token = (uint64_t)backend->slots[index].generation << 32 | index;
    if (!prepare(backend, interest, token)) {
        release_slot(backend, index);
        return -EAGAIN;
    }
    backend->slots[index].interest = interest;
    interest->token = token;
    return 0;
}

/* Cancels a request. IORING_OP_POLL_REMOVE is not used: it gives up (-EALREADY) on a request that has just been
 * woken. If the wake turns out to be for nothing, or the request is a multishot one, the request stays and holds the
 * file for ever. */
static bool cancel(hd_backend *backend, uint64_t token)
{
    struct io_uring_sqe *sqe = new_request(backend, NO_TOKEN);
    if (!sqe) return false; /* a poll stays in the kernel until its event; its token is void already */
    sqe->opcode = IORING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->addr = token;
    return true;
}

static void remove_poll(hd_backend *backend, uint64_t token)
{
    backend->removals = true;
    cancel(backend, token);
}

/* Does task work of the ring until there are this many completions, or all work is done. A ring with DEFER_TASKRUN does
 * only about 20 pieces of it in an enter that wants no completion. So this asks for many, without waiting, and repeats
 * that. If the ring has no room for all completions, the rest is reaped after the next look at the kernel. */
static void do_task_work(uring_ring *ring, unsigned most)
{
    for (int rounds = 0; rounds < TASK_WORK_ROUNDS_MAX && uring_ring_wants_enter(ring); rounds++) {
        unsigned ready = uring_ring_ready(ring);
        if (ready >= most) return;
        uring_ring_enter(ring, most - ready < COMPLETIONS_MAX ? most - ready : COMPLETIONS_MAX, 0);
    }
}

static void finish_task_work(uring_ring *ring)
{
    do_task_work(ring, UINT_MAX);
}

/* A read for which no buffer is left becomes a poll and a read, which cost three times as much. So when thousands of
 * sockets are ready, the rest of them waits for the next look. */
static void do_task_work_for_buffers(const hd_backend *backend, uring_ring *ring)
{
    do_task_work(ring, backend->buffers.memory ? uring_buffers_free(&backend->buffers) : UINT_MAX);
}

/* Makes the kernel let go of files. The first enter submits the removals; the removed requests drop their files in
 * task work. Without a removal there are no files that the kernel must drop. */
static void uring_release_files(hd_backend *backend)
{
    if (!backend->removals) return;
    backend->removals = 0;
    if (uring_ring_unsubmitted(&backend->ring)) uring_ring_enter(&backend->ring, 0, 0);
    finish_task_work(&backend->ring);
}

static void uring_reap(hd_backend *backend);

static bool in_use(const hd_backend *backend, uint64_t token)
{
    return backend->slots[(uint32_t)token].generation == (uint32_t)(token >> 32);
}

/* Takes back a read or a send, and waits for the answer: bytes that were read must not be lost, and bytes that were
 * sent are counted. The answer comes at once for sockets. The memory is the ring's: if a driver keeps the kernel
 * from answering, only the bytes are lost that it reads later. */
static void drop_move(hd_backend *backend, uint64_t token)
{
    bool cancelled = false;
    backend->slots[(uint32_t)token].dropped = true;
    for (int turns = 0; turns < DROP_TURNS_MAX && in_use(backend, token); turns++) {
        if (!cancelled) cancelled = cancel(backend, token); /* the ring may be full */
        uring_ring_enter(&backend->ring, turns > 0, turns > 0 ? DROP_TURN_NS : HD_NO_DEADLINE);
        finish_task_work(&backend->ring);
        uring_reap(backend);
    }
    if (in_use(backend, token)) release_slot(backend, (uint32_t)token);
}

/* Takes a request out of the ring that the kernel has not been given. It must not reach the kernel, because by then
 * the number of the descriptor may be another file's. */
static bool take_out(hd_backend *backend, uint64_t token)
{
    uring_slot *slot = &backend->slots[(uint32_t)token];
    if (!uring_ring_withdraw(&backend->ring, slot->request, token, NO_TOKEN)) return false;
    if (slot->sends) uring_outbox_free(&backend->outbox, slot->sends);
    backend->moves -= slot->moves;
    slot->moves = false;
    slot->sends = NULL;
    return true;
}

/* Waits until the look at the kernel that now runs in the loop's thread has submitted the request, with all others. The
 * kernel may refuse them, so the wait is bounded. */
static void await_submission(const hd_backend *backend, uint64_t token)
{
    unsigned number = backend->slots[(uint32_t)token].request;
    for (int turns = 0; turns < SUBMISSION_TURNS_MAX && !uring_ring_was_given(&backend->ring, number); turns++)
        usleep(SUBMISSION_TURN_US);
}

static void uring_withdraw(hd_backend *backend, hd_interest *interest, bool polls)
{
    if (!interest->token) return;
    if (polls)
        await_submission(backend, interest->token);
    else
        take_out(backend, interest->token);
}

static void uring_disarm(hd_backend *backend, hd_interest *interest)
{
    uint64_t token = interest->token;
    bool never_given = take_out(backend, token);
    if (backend->slots[(uint32_t)token].moves) {
        drop_move(backend, token);
        return;
    }
    release_slot(backend, (uint32_t)token);
    if (!never_given) remove_poll(backend, token);
}

static void arm_wake(hd_backend *backend)
{
    if (backend->wake_armed) return;
    backend->wake_armed = prepare_poll(backend, backend->wakeup.fd.number, POLLIN, IORING_POLL_ADD_MULTI, WAKE_TOKEN);
}

static void uring_poll_nogvl(hd_backend *backend, int64_t timeout_ns, bool watches)
{
    uring_ring *ring = &backend->ring;
    if (timeout_ns != 0 && hd_wakeup_was_signalled(&backend->wakeup)) timeout_ns = 0;
    bool kernel_works = backend->requests != backend->wake_armed || uring_ring_peek(ring);
    if (timeout_ns != 0 && !watches && !kernel_works) {
        hd_wakeup_sleep(&backend->wakeup, timeout_ns);
        return;
    }
    if (timeout_ns != 0) arm_wake(backend);
    if (uring_ring_peek(ring) || !backend->wake_armed) timeout_ns = 0; /* a wake must be able to end the sleep */
    if (timeout_ns != 0) {
        uring_ring_enter(ring, 1, timeout_ns);
        hd_wakeup_note_awake(&backend->wakeup);
    }
    else if (uring_ring_unsubmitted(ring))
        uring_ring_enter(ring, 0, 0);
    do_task_work_for_buffers(backend, ring);
}

/* Does this result only say that the kernel does not read or send now, or not in this way? All other results are
 * answers, which the kernel reports only once. */
static bool is_no_answer(int result)
{
    return result == -EAGAIN || result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EINVAL ||
           result == -EOPNOTSUPP || result == -ENOTSOCK || result == -EFAULT || result == -ENOMEM || result == -EBADF;
}

static void complete_move(hd_backend *backend, uint32_t index, uint64_t token, int result, const char *bytes)
{
    uring_slot *slot = &backend->slots[index];
    hd_interest *interest = slot->interest;
    backend->moves--;
    if (slot->sends) uring_outbox_free(&backend->outbox, slot->sends);
    slot->sends = NULL;
    if (!is_no_answer(result)) {
        release_slot(backend, index);
        hd_interest_deliver_bytes(interest, bytes, result);
        return;
    }
    if (bytes) uring_buffers_offer(&backend->buffers, bytes);
    if (slot->dropped) {
        release_slot(backend, index);
        return;
    }
    slot->moves = false;
    if (prepare_poll(backend, interest->fd, wake_events(interest->events), 0, token)) return;
    release_slot(backend, index);
    hd_interest_deliver(interest, POLLERR); /* the ring is full: the operation itself will find out */
}

/* The buffer that the kernel has read into, or NULL. */
static const char *buffer_of(hd_backend *backend, unsigned flags)
{
    return flags & IORING_CQE_F_BUFFER ? uring_buffers_take(&backend->buffers, flags) : NULL;
}

static void complete(hd_backend *backend, uint64_t token, int result, unsigned flags)
{
    const char *bytes = buffer_of(backend, flags);
    if (token == NO_TOKEN) return;
    if (token == WAKE_TOKEN) { /* a multishot poll reports each write to the eventfd, even if nobody reads it */
        if (flags & IORING_CQE_F_MORE) return;
        backend->wake_armed = false;
        hd_wakeup_clear(&backend->wakeup);
        return;
    }
    uint32_t index = (uint32_t)token;
    HD_ASSERT(index < backend->slots_count);
    uring_slot *slot = &backend->slots[index];
    if (slot->generation != (uint32_t)(token >> 32)) { /* disarmed in the meantime */
        if (bytes) uring_buffers_offer(&backend->buffers, bytes);
        return;
    }
    if (slot->moves) {
        complete_move(backend, index, token, result, bytes);
        return;
    }
    hd_interest *interest = slot->interest;
    bool more = flags & IORING_CQE_F_MORE;
    /* The native thread on which the request was made has ended: a Ruby thread that is not pinned may have left it. */
    bool orphaned = result == -ECANCELED;
    if (orphaned && prepare_poll(backend, interest->fd, wake_events(interest->events), 0, token)) return;
    short revents = result < 0 ? POLLNVAL : (short)result;
    interest->unpollable = result < 0 && result != -EBADF && !orphaned;
    if (revents & POLLPRI) { /* the wake may be for urgent data, and not for the events that are ready */
        struct pollfd now = {.fd = interest->fd, .events = interest->events};
        revents = poll(&now, 1, 0) < 0 ? POLLNVAL : now.revents;
    }
    if (!hd_interest_ready(interest, revents)) {
        /* Every poll request ends with POLLRDHUP, POLLHUP and POLLERR, whatever events it names. A writer whose peer
         * has half-closed would ask again and again, so this is a multishot request, which answers only to changes. */
        unsigned events = wake_events(interest->events);
        if (more || prepare_poll(backend, interest->fd, events, IORING_POLL_ADD_MULTI, token)) return;
        revents = POLLERR; /* the ring is full: the operation itself will find out */
    }
    release_slot(backend, index);
    if (more) remove_poll(backend, token);
    hd_interest_deliver(interest, revents);
}

static void uring_reap(hd_backend *backend)
{
    struct io_uring_cqe *cqe;
    while ((cqe = uring_ring_peek(&backend->ring))) {
        uint64_t token = cqe->user_data;
        int result = cqe->res;
        unsigned flags = cqe->flags;
        uring_ring_advance(&backend->ring);
        if (!(flags & IORING_CQE_F_MORE)) backend->requests--;
        complete(backend, token, result, flags);
    }
}

static void uring_release_bytes(hd_backend *backend, const char *bytes)
{
    uring_buffers_offer(&backend->buffers, bytes);
}

static bool uring_has_news(hd_backend *backend)
{
    return uring_ring_wants_enter(&backend->ring) || uring_ring_peek(&backend->ring);
}

static bool uring_gathers(hd_backend *backend)
{
    return uring_ring_unsubmitted(&backend->ring) > 0;
}

static bool uring_rest(hd_backend *backend)
{
    if (uring_ring_unsubmitted(&backend->ring)) uring_ring_enter(&backend->ring, 0, 0);
    finish_task_work(&backend->ring);
    uring_reap(backend);
    backend->removals = false;
    return backend->requests == backend->wake_armed;
}

static void uring_wake(hd_backend *backend)
{
    hd_wakeup_signal(&backend->wakeup);
}

const hd_backend_ops hd_backend_uring = {
    .name = "uring",
    .probe = uring_probe,
    .open = uring_open,
    .close = uring_close,
    .arm = uring_arm,
    .disarm = uring_disarm,
    .release_bytes = uring_release_bytes,
    .can_send = uring_can_send,
    .has_news = uring_has_news,
    .gathers = uring_gathers,
    .withdraw = uring_withdraw,
    .release_files = uring_release_files,
    .poll_nogvl = uring_poll_nogvl,
    .reap = uring_reap,
    .wake = uring_wake,
    .rest = uring_rest,
};
