/* WHICH WAY A TRANSFER GOES. See way.h for the interface.
 *
 * The problem: a transfer can be a system call of its own, or a request of the ring, whose system call it shares with
 * the requests of other fibers. The request costs two switches of fibers and about half a microsecond in the kernel. A
 * system call costs 0.1 us on one machine, and 1 us or more on another one: with page-table isolation, seccomp filters,
 * a hypervisor, a tracer.
 *
 * The way: the cost of a system call is measured once (os/call_cost.h). Where calls are cheap, only reads that must
 * wait are requests, and writes where each would wake another process. Where they are dear, each small read and write
 * of a socket or a pipe is a request if others take part: fibers that are ready, or requests that were not submitted
 * yet. A lone write, with which no other request shares the call so far, is a request if the last lone writes have
 * shared their call with the answer of a peer.
 *
 * Guesses say whether a read will have to wait, which saves the system call that would find nothing. The peer of a
 * request and response protocol waits at every read. So once a read had to wait, the next one asks the kernel to wait
 * at once, with all the other requests since the last look. When such a wait ends immediately, reads are tried first
 * again.
 *
 * A wrong guess costs a look at the kernel, never more, because the kernel reports everything that a read would find at
 * once. That holds for one IO, and for one kind of call. A listening socket refuses a read at once, but is not
 * readable. For another IO that has got the same descriptor, the kernel may report nothing although a read finds the
 * end of the file. No guess exists for writes: a socket or a pipe that has room for a small one need not be writable.
 *
 * Rejected: a write that returns before its answer has come. Its error would come too late.
 *
 * The price: a switch at each transfer. HEDDLE_CALLS=direct or ring forces one way.
 *
 * Source: guides/design.md (Reads in the ring; Writes in the ring; Dear system calls). */
#include "way.h"

#include <string.h>

#include "core/interest.h"
#include "os/call_cost.h"
#include "os/kernel_features.h"
#include "os/read_write.h"
#include "ruby/init.h"

/* From this cost of a system call on, requests of the ring pay. */
#define DEAR_CALL_NS INT64_C(500)

/* If fewer fibers are ready, a write that waits costs more than a cheap system call. */
enum { MANY_READY = 8 };

/* After a lone write that has shared its call with nothing, this number of lone writes is made directly. */
enum { LONE_WRITES_DIRECT = 32 };

/* A request that shares its call waits for the turns of all that are ready. It must not do so where these compute: a
 * server whose requests take a millisecond each would wait for all of them at each small read. So turns must be shorter
 * than the longer of two times: that of CALLS_PER_TURN calls, and SHORT_TURN_NS. */
enum { CALLS_PER_TURN = 40, SHORT_TURN_NS = 50000 };

/* Does a system call cost enough that it pays to share one? */
static bool calls_are_dear(void)
{
    return hd_call_cost_ns() >= DEAR_CALL_NS;
}

bool hd_way_choose(hd_scheduler *scheduler, const char *name)
{
    bool ring = name && strcmp(name, "ring") == 0, direct = name && strcmp(name, "direct") == 0;
    scheduler->reactor.shares = scheduler->ops->can_send && (ring || (!name && calls_are_dear()));
    if (scheduler->reactor.shares) {
        int64_t calls_ns = CALLS_PER_TURN * hd_call_cost_ns();
        scheduler->reactor.long_turn_ns = calls_ns > SHORT_TURN_NS ? calls_ns : SHORT_TURN_NS;
    }
    return !name || ring || direct;
}

/* -- what is known of a descriptor ----------------------------------------------------------------------------- */

static hd_known_io *known(const hd_transfer *call)
{
    const hd_scheduler *scheduler = call->scheduler;
    if (call->fd >= scheduler->known.count) return NULL;
    hd_known_io *known = &scheduler->known.by_descriptor[call->fd];
    return known->io == call->io ? known : NULL;
}

/* Returns the record of the IO, which is made if it does not exist. NULL: no memory is left. */
static hd_known_io *get_known(const hd_transfer *call)
{
    hd_scheduler *scheduler = call->scheduler;
    if (call->fd >= scheduler->known.count) {
        int count = (call->fd + 64) * 2;
        hd_known_io *all = realloc(scheduler->known.by_descriptor, count * sizeof(*all));
        if (!all) return NULL;
        memset(all + scheduler->known.count, 0, (count - scheduler->known.count) * sizeof(*all));
        scheduler->known.by_descriptor = all;
        scheduler->known.count = count;
    }
    hd_known_io *known = &scheduler->known.by_descriptor[call->fd];
    if (known->io != call->io) *known = (hd_known_io){.io = call->io};
    return known;
}

void hd_forget_way(hd_scheduler *scheduler, int fd)
{
    if (fd >= 0 && fd < scheduler->known.count) scheduler->known.by_descriptor[fd] = (hd_known_io){0};
}

bool hd_accepts_without_blocking(const hd_transfer *call)
{
    const hd_known_io *before = known(call);
    if (before && before->never_blocks) return true;
    if (hd_in_blocking_mode(call->fd)) return false;
    hd_known_io *known = get_known(call);
    if (known) known->never_blocks = true;
    return true;
}

static bool is_pipe(const hd_transfer *call)
{
    hd_known_io *known = get_known(call);
    if (!known) return false;
    if (!known->kind_is_known) known->is_pipe = hd_is_fifo(call->fd);
    known->kind_is_known = true;
    return known->is_pipe;
}

/* -- guesses --------------------------------------------------------------------------------------------------- */

bool hd_expects_to_wait(const hd_transfer *call)
{
    if (call->direction == HD_WRITE || call->kind == HD_MAYBE_FILE || call->kind == HD_TERMINAL) return false;
    const hd_known_io *before = known(call);
    return before && (call->accepts ? before->accepts_wait : before->reads_wait);
}

void hd_expect_to_wait(const hd_transfer *call, bool wait)
{
    if (call->direction == HD_WRITE) return;
    hd_known_io *known = get_known(call);
    if (!known) return;
    if (call->accepts)
        known->accepts_wait = wait;
    else
        known->reads_wait = wait;
}

/* -- the ring -------------------------------------------------------------------------------------------------- */

bool hd_ring_moves(const hd_transfer *call)
{
    const hd_scheduler *scheduler = call->scheduler;
    const hd_reactor *reactor = &scheduler->reactor;
    if (!reactor->backend || !reactor->ops->can_send || hd_scheduler_foreign(scheduler)) return false;
    return call->kind == HD_SOCKET || (reactor->shares && call->kind == HD_STREAM && is_pipe(call));
}

/* In a run with a virtual clock, the machine must not decide about the order. */
static bool shares(const hd_scheduler *scheduler)
{
    const hd_reactor *reactor = &scheduler->reactor;
    return reactor->shares && !reactor->long_turns && !reactor->rounds.on;
}

static bool was_looked_at_lately(const hd_reactor *reactor)
{
    return hd_clock_now() - reactor->polled_ns <= HD_NS_PER_POLL;
}

/* Should a read be a request of the ring although it may find bytes at once? */
static bool read_shares_call(const hd_transfer *call, size_t size)
{
    const hd_reactor *reactor = &call->scheduler->reactor;
    if (!shares(call->scheduler) || size == 0 || size > HD_RECEIVED_MAX || !hd_ring_moves(call)) return false;
    if (!hd_reactor_has_ready(reactor) && !reactor->ops->gathers(reactor->backend)) return false;
    return !hd_map_find(reactor->ios, (hd_word)call->fd) && was_looked_at_lately(reactor);
}

bool hd_waits_first(hd_transfer *call, size_t size)
{
    if (hd_expects_to_wait(call)) return true;
    return call->asks = read_shares_call(call, size);
}

/* Do writes that wait pay where a system call is cheap? The build with assertions does not ask, so that its tests meet
 * such writes often. */
static bool waiting_writes_pay(const hd_scheduler *scheduler)
{
#ifdef HEDDLE_ASSERT_BUILD
    return hd_reactor_has_ready(&scheduler->reactor);
#endif
    const hd_reactor *reactor = &scheduler->reactor;
    if (scheduler->way.tried_at != reactor->polls || scheduler->way.peers_are_here) return false;
    int count = 0;
    for (const hd_node *node = reactor->ready.head.next; node != &reactor->ready.head; node = node->next)
        if (++count == MANY_READY) return true;
    return false;
}

/* Should a lone write share its call? Something must be armed that may answer with it. */
static bool lone_writes_pay(hd_scheduler *scheduler)
{
    if (scheduler->reactor.armed == 0) return false;
    if (scheduler->way.lone_writes_direct == 0) return true;
    scheduler->way.lone_writes_direct--;
    return false;
}

bool hd_write_shares_call(hd_transfer *call, size_t size)
{
    hd_scheduler *scheduler = call->scheduler;
    const hd_reactor *reactor = &scheduler->reactor;
    if (size > HD_SHARED_WRITE_MAX || !hd_ring_moves(call)) return false;
    if (!reactor->ops->can_send(reactor->backend, size)) return false;
    if (!shares(scheduler)) return waiting_writes_pay(scheduler) && was_looked_at_lately(reactor);
    call->is_alone = !hd_reactor_has_ready(reactor) && !reactor->ops->gathers(reactor->backend);
    call->answers = reactor->answers;
    return call->is_alone ? lone_writes_pay(scheduler) : was_looked_at_lately(reactor);
}

void hd_note_shared_write(const hd_transfer *call)
{
    if (call->is_alone && call->scheduler->reactor.answers - call->answers < 2)
        call->scheduler->way.lone_writes_direct = LONE_WRITES_DIRECT;
}

bool hd_begin_direct_write(const hd_transfer *call, bool *news)
{
    const hd_scheduler *scheduler = call->scheduler;
    const hd_reactor *reactor = &scheduler->reactor;
    bool first = !scheduler->reactor.shares && scheduler->way.tried_at != reactor->polls && hd_ring_moves(call);
    *news = first && reactor->ops->has_news(reactor->backend);
    return first;
}

void hd_end_direct_write(const hd_transfer *call, bool news)
{
    hd_scheduler *scheduler = call->scheduler;
    const hd_reactor *reactor = &scheduler->reactor;
    scheduler->way.tried_at = reactor->polls;
    if (!news) scheduler->way.peers_are_here = reactor->ops->has_news(reactor->backend);
}

/* -- for people and tests ------------------------------------------------------------------------------------------ */

/* @private
 * @return [Integer] what a system call costs here, in nanoseconds */
static VALUE call_cost(VALUE class)
{
    return LL2NUM(hd_call_cost_ns());
}

/* @private
 * @return [Array<Boolean>] the kernel has pidfd_open, epoll_pwait2, and the deferred work of io_uring */
static VALUE kernel_features(VALUE class)
{
    return rb_ary_new_from_args(3, HD_BOOL(hd_kernel_has_process_fds()), HD_BOOL(hd_kernel_has_fine_timers()),
                                HD_BOOL(hd_kernel_has_deferred_work()));
}

/* @private
 * @return [Boolean] small reads and writes share system calls */
static VALUE shares_calls_p(VALUE self)
{
    return HD_BOOL(hd_scheduler_get(self)->reactor.shares);
}

void hd_init_way(void)
{
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "call_cost", call_cost, 0);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "kernel_features", kernel_features, 0);
    rb_define_private_method(hd_cScheduler, "shares_calls?", shares_calls_p, 0);
}
