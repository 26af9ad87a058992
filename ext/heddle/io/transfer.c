/* Reads and writes of an IO. See transfer.h for the interface.
 *
 * The problem: a read or write that would block holds up the thread with all its fibers. A wait before each one would
 * be a needless look at the kernel where the data is there already.
 *
 * The way: make the system call first, and park only after EAGAIN. A read that is expected to wait
 * (hd_expects_to_wait) parks first, and io_uring may deliver the bytes with the end of that wait. A small
 * write to a socket may go out with those of other fibers. A file operation that could block runs on a worker, with a
 * copy of the bytes. On another thread than the scheduler's, the wait is a poll(2) without the GVL. An operation that
 * never waits counts against the turn of its task (fibers/turn.h).
 *
 * Rejected: a persistent registration for each descriptor. If a C library closes such a descriptor without Heddle's
 * knowledge, a fiber would wait for ever, or, on io_uring, the connection would stay open.
 *
 * The price: a wrong guess costs a look at the kernel. The buffer must be asked for anew after every wait, because it
 * may have changed.
 *
 * Sources: guides/design.md (A read, step by step; Files; Reads in the ring; Writes in the ring). */
#include <poll.h>

#include "transfer.h"

#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/read_ahead.h"
#include "fibers/turn.h"
#include "fibers/worker_call.h"
#include "os/read_write.h"
#include "ruby/caught.h"
#include "ruby/deadline.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "shared_io.h"
#include "way.h"

/* The largest number of bytes that one call moves, which is the most that one system call moves. Ruby makes an int of
 * the value that a hook returns. */
enum { MOVED_MAX = 0x7ffff000 };

/* The longest part that is copied for a worker. The caller then asks for the remaining bytes. */
enum { COPY_MAX = 1 << 20 };

static VALUE eTimeoutError, cBasicSocket;

char *hd_read_memory(hd_scheduler *scheduler)
{
    if (RB_LIKELY(scheduler->read_memory)) return scheduler->read_memory;
    scheduler->read_memory = malloc(HD_READ_MEMORY_SIZE);
    if (!scheduler->read_memory) rb_memerror();
    return scheduler->read_memory;
}

/* -- waits --------------------------------------------------------------------------------------------------- */

int hd_poll_once(int fd, int events, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = (short)events};
    int count = poll(&poll_fd, 1, timeout_ms);
    if (count < 0) return -errno;
    return count ? hd_events_ready((short)events, poll_fd.revents) : 0;
}

/* Waits on another thread than the scheduler's (a blocking operation of Ruby's in a thread of the pool), which must not
 * touch the reactor. The pool ends an operation with the exception BlockingJob::Stop. It is otherwise put off there,
 * but ends this wait, because nothing can be lost here. */
static int wait_in_this_thread(int fd, int events, int64_t deadline_ns)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = (short)events};
        int result = hd_poll_alone(&poll_fd, 1, deadline_ns);
        if (result > 0) result = hd_events_ready((short)events, poll_fd.revents);
        if (result > 0) return result;
        if (result < 0 && result != -EINTR) return result;
        if (result == 0 && hd_clock_now() >= deadline_ns) return 0;
        rb_funcall(rb_const_get(hd_cScheduler, rb_intern("BlockingJob")), rb_intern("check_stop"), 0);
    }
}

/* What a wait for one descriptor returns. If it has ended without an event, its caller looks again. */
static int events_of(int result, const hd_interest *interest)
{
    if (result <= 0) return result;
    return RB_LIKELY(interest->revents) ? interest->revents : -EAGAIN;
}

/* Waits for events of a file, which is always ready to be read and written, and has no urgent data. A fiber that waits
 * only for urgent data waits for a close. */
static int wait_for_file(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns)
{
    if (events & ~POLLPRI) return events & ~POLLPRI;
    hd_interest interest = {.fd = fd, .events = POLLPRI, .io = (hd_word)io, .selects = true, .unpollable = true};
    hd_request request = {.kind = HD_WAIT_FOR_SELECT, .subject = Qnil, .deadline_ns = deadline_ns,
                          .interests = &interest, .interests_count = 1};
    return events_of(hd_park_until_ready(scheduler, &request), &interest);
}

/* Parks for events. Returns the events that are ready, 0 after a timeout, -EPERM if the IO cannot be polled, -EAGAIN if
 * it was closed meanwhile, or another -errno. */
static int park_on(hd_scheduler *scheduler, hd_interest *interest, int64_t deadline_ns)
{
    VALUE io = (VALUE)interest->io;
    hd_request request = {.kind = HD_WAIT_FOR_IO, .subject = io, .deadline_ns = deadline_ns, .interests = interest,
                          .interests_count = 1};
    request.moves_bytes = interest->size;
    if (request.moves_bytes && !interest->bytes_to_send) request.read_memory = hd_read_memory(scheduler);
    int result = hd_park_until_ready(scheduler, &request);
    RB_GC_GUARD(io);
    if (result > 0 && interest->unpollable) return -EPERM; /* found by the ring; epoll's arm has returned it */
    return events_of(result, interest);
}

static int wait_for(hd_scheduler *scheduler, hd_interest *interest, int64_t deadline_ns)
{
    for (VALUE io = (VALUE)interest->io;; interest->fd = rb_io_descriptor(io)) { /* raises if the IO was closed */
        int ready = RB_UNLIKELY(hd_scheduler_foreign(scheduler))
                        ? wait_in_this_thread(interest->fd, interest->events, deadline_ns)
                        : park_on(scheduler, interest, deadline_ns);
        if (ready == -EPERM) {
            interest->at_once = true;
            ready = wait_for_file(scheduler, io, interest->fd, interest->events, deadline_ns);
        }
        if (RB_LIKELY(ready >= 0)) return ready;
        if (ready != -EAGAIN) rb_syserr_fail(-ready, "heddle: cannot wait for the IO");
    }
}

int hd_wait_io(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns)
{
    hd_interest interest = {.fd = fd, .events = (short)events, .io = (hd_word)io};
    return wait_for(scheduler, &interest, deadline_ns);
}

/* -- transfers ----------------------------------------------------------------------------------------------- */

/* A transfer that a worker makes. */
typedef struct {
    hd_transfer *call;
    hd_rw_job *job;
} worker_call;

static VALUE release_job(VALUE job)
{
    hd_job_release((hd_job *)job);
    return Qnil;
}

static VALUE read_result(VALUE pointer)
{
    hd_transfer *call = ((worker_call *)pointer)->call;
    hd_rw_job *job = ((worker_call *)pointer)->job;
    hd_run_on_worker(call->scheduler, &job->job, call->io);
    call->fd = rb_io_descriptor(call->io); /* raises if the IO was closed meanwhile, which frees Ruby's read buffer */
    if (job->result > 0) {
        void *base;
        size_t size;
        rb_io_buffer_get_bytes_for_writing(call->buffer, &base, &size);
        if (call->offset + job->result > size) return INT2FIX(-EFAULT); /* the buffer was resized meanwhile */
        memcpy((char *)base + call->offset, job->bytes, job->result);
    }
    return LONG2NUM(job->result);
}

static VALUE await_job(VALUE pointer)
{
    const hd_transfer *call = ((worker_call *)pointer)->call;
    hd_job *job = &((worker_call *)pointer)->job->job;
    hd_request request = {.kind = HD_WAIT_FOR_WORKER, .subject = call->io, .deadline_ns = HD_NO_DEADLINE,
                          .jobs = &job, .jobs_count = 1};
    hd_park(call->scheduler, &request);
    return Qnil;
}

/* Keeps the exception that will be raised: the first one, but a kill takes precedence. The others are raised at the
 * next wait. */
static void keep(hd_caught *first, const hd_caught *caught, VALUE *others)
{
    bool replaces = !first->state || (NIL_P(caught->exception) && !NIL_P(first->exception));
    VALUE other = replaces ? first->exception : caught->exception;
    if (replaces) *first = *caught;
    if (!NIL_P(other)) rb_ary_push(NIL_P(*others) ? *others = rb_ary_new() : *others, other);
}

/* Finishes a write for its caller. As with write(2), a write has ended when its caller goes on, also when an exception
 * is raised in the fiber meanwhile: later writes to the file, and later steps of the program, must not overtake it. The
 * bytes written from Ruby's write buffer are taken off it, because the close in an ensure block would otherwise write
 * them once more. */
static VALUE write_result(VALUE pointer)
{
    hd_transfer *call = ((worker_call *)pointer)->call;
    hd_rw_job *job = ((worker_call *)pointer)->job;
    hd_caught first = {.exception = Qnil}, caught;
    VALUE others = Qnil;
    for (hd_submit_or_run(call->scheduler, &job->job); !hd_job_finished(&job->job);) {
        hd_catch(await_job, pointer, &caught);
        if (caught.state) keep(&first, &caught, &others);
    }
    hd_raise_all_later(call->scheduler, others);
    if (first.state && call->flushes && job->result > 0) hd_io_flushed(call->io, (size_t)job->result);
    hd_go_on(&first);
    if (!call->flushes) call->fd = rb_io_descriptor(call->io); /* raises if the IO was closed meanwhile */
    return LONG2NUM(job->result);
}

/* Does the write append to a file? Appended bytes go to the file in one piece, so that nothing that others append comes
 * in between. */
static bool appends(const hd_transfer *call)
{
    return call->direction == HD_WRITE && rb_io_mode(call->io) & FMODE_APPEND;
}

/* Makes a file operation that could block on a worker, with a copy of the bytes. It is made here, with the GVL, if no
 * memory or no descriptor is left for that, or if the process may have record locks on the file. The GVL keeps others
 * from closing the descriptor meanwhile, and from moving the bytes. */
static ssize_t move_on_worker(hd_transfer *call, void *bytes, size_t size, off_t from)
{
    if (size > COPY_MAX && !appends(call)) size = COPY_MAX;
    hd_rw_job *job = hd_rw_job_new(call->direction, call->fd, bytes, size, from);
    if (!job) return hd_rw_blocking(call->direction, call->fd, bytes, size, from);
    worker_call on_worker = {call, job};
    VALUE (*result)(VALUE) = call->direction == HD_WRITE ? write_result : read_result;
    return NUM2LONG(rb_ensure(result, (VALUE)&on_worker, release_job, (VALUE)job));
}

void hd_raise_out_of_bounds(void)
{
    rb_raise(rb_eArgError, "Specified offset+length is bigger than the buffer size!"); /* Ruby's own message */
}

void *hd_transfer_bytes(hd_transfer *call, size_t *size)
{
    void *base;
    if (call->flushes) return hd_io_write_buffer(call->io, size);
    if (call->direction == HD_READ)
        rb_io_buffer_get_bytes_for_writing(call->buffer, &base, size);
    else
        rb_io_buffer_get_bytes_for_reading(call->buffer, (const void **)&base, size);
    if (call->offset > *size) hd_raise_out_of_bounds();
    *size -= call->offset;
    return (char *)base + call->offset;
}

static bool must_not_wait(const hd_transfer *call)
{
    return HD_OFFSET_BEFORE_LENGTH || (call->direction == HD_READ && hd_called_by_read_nonblock());
}

static bool waits_first(const hd_transfer *call)
{
    return hd_expects_to_wait(call) && !must_not_wait(call);
}

/* Waits until the IO is ready for this transfer. */
static void wait_until_ready(hd_transfer *call)
{
    hd_interest interest = {.fd = call->fd, .events = call->direction == HD_READ ? POLLIN : POLLOUT,
                            .io = (hd_word)call->io};
    bool alone = !hd_map_find(call->scheduler->reactor.ios, (hd_word)call->fd);
    bool asks = call->asks;
    call->asks = false;
    interest.waits = !asks;
    if (alone && call->room > 0 && call->room <= HD_RECEIVED_MAX && hd_ring_moves(call)) {
        interest.size = call->room;
        interest.is_pipe = call->kind != HD_SOCKET;
    }
    if (call->deadline_ns == 0) call->deadline_ns = hd_deadline_from(hd_io_timeout(call->io));
    call->others_ran = true;
    int ready = wait_for(call->scheduler, &interest, call->deadline_ns);
    call->received = interest.answered;
    call->moved = interest.result;
    if (call->received) {
        hd_expect_to_wait(call, !interest.at_once);
        return;
    }
    if (!ready) rb_raise(eTimeoutError, "Blocking operation timed out!");
    /* If a twin was reopened during the wait, the descriptor is another file's, and its waiters begin anew on it. */
    call->fd = rb_io_descriptor(call->io);
    /* It was ready as soon as the kernel was asked, so it may be an IO made from a file's descriptor: see
     * hd_kind_of. */
    if (interest.at_once && !asks && call->kind == HD_STREAM) call->kind = HD_MAYBE_FILE;
    if (!hd_scheduler_turns_here(call->scheduler)) return;
    hd_expect_to_wait(call, !interest.at_once && call->kind != HD_MAYBE_FILE);
    if (!alone && call->direction == HD_READ) call->fd = hd_after_those_before(call->scheduler, call->io, call->fd);
}

ssize_t hd_transfer_run(hd_transfer *call, bool wait, hd_attempt *attempt, void *argument)
{
    call->received = false;
    if (!wait) hd_transfer_spend_turn(call);
    for (;; wait = true) {
        if (wait) wait_until_ready(call);
        ssize_t result = attempt(call, argument);
        if (result != -EAGAIN || call->gives_up) return result;
    }
}

ssize_t hd_transfer_try(hd_transfer *call, void *bytes, size_t size)
{
    bool news, first = call->direction == HD_WRITE && hd_begin_direct_write(call, &news);
    ssize_t moved = hd_rw_try(call->direction, call->fd, bytes, size, HD_NO_OFFSET, &call->kind);
    if (first) hd_end_direct_write(call, news);
    return moved;
}

ssize_t hd_transfer_send(hd_transfer *call, const char *bytes, size_t size)
{
    hd_interest interest = {.fd = call->fd, .events = POLLOUT, .io = (hd_word)call->io, .size = size,
                            .bytes_to_send = bytes, .is_pipe = call->kind != HD_SOCKET};
    call->scheduler->reactor.writes = call->scheduler->reactor.shares;
    int ready = wait_for(call->scheduler, &interest, hd_deadline_from(hd_io_timeout(call->io)));
    hd_note_shared_write(call);
    if (interest.answered && (interest.result < 0 || (size_t)interest.result == size)) return interest.result;
    if (!interest.answered && !ready) rb_raise(eTimeoutError, "Blocking operation timed out!");
    /* more will be done with the descriptor: raises if it was closed meanwhile */
    call->fd = rb_io_descriptor(call->io);
    return interest.answered ? interest.result : -EAGAIN;
}

/* Waits until the terminal is ready, for no longer than the terminal's own timeout. Returns false when that has passed.
 * IO#timeout takes precedence, as in plain Ruby. */
static bool wait_for_terminal(hd_transfer *call)
{
    if (!NIL_P(hd_io_timeout(call->io))) {
        wait_until_ready(call);
        return true;
    }
    int64_t patience_ns = hd_terminal_read_timeout(call->fd);
    int64_t until_ns = patience_ns == HD_NO_DEADLINE ? HD_NO_DEADLINE : hd_clock_now() + patience_ns;
    call->others_ran = true;
    int ready = hd_wait_io(call->scheduler, call->io, call->fd, POLLIN, until_ns);
    call->fd = rb_io_descriptor(call->io);
    return ready;
}

static size_t piece_of(const hd_transfer *call, size_t size)
{
    bool whole = size <= HD_PIECE_SIZE || call->kind != HD_MAYBE_FILE || hd_scheduler_foreign(call->scheduler) ||
                 appends(call);
    return whole || must_not_wait(call) ? size : HD_PIECE_SIZE;
}

/* Lets the other fibers run, also those whose time has come since the last look at the kernel. The request names the
 * IO, because its lock may be held meanwhile: see fork_child.c. */
static void let_others_run(hd_transfer *call)
{
    call->others_ran = true;
    call->scheduler->reactor.switches = HD_SWITCHES_PER_POLL; /* a switch looks at the kernel only now and then */
    hd_park(call->scheduler, &(hd_request){.kind = HD_WAIT_YIELDED, .subject = call->io, .place = HD_BEHIND,
                                           .quiet = call->amid});
    call->fd = rb_io_descriptor(call->io); /* raises if one of them has closed it */
}

/* Keeps the turn from lasting too long. IO#read_nonblock, which calls the same hook, lets no other fiber run. */
bool hd_transfer_spend_turn(hd_transfer *call)
{
    if (call->in_part) return false;
    hd_turn_end end = call->amid ? HD_TURN_ENDS_AMID : call->direction == HD_WRITE ? HD_TURN_ENDS_LATER : HD_TURN_ENDS;
    if (!call->amid) hd_pending_raise_overdue(call->scheduler);
    if (RB_LIKELY(!hd_reactor_count_operation(&call->scheduler->reactor))) return false;
    if (call->direction == HD_READ && hd_called_by_read_nonblock()) return false;
    if (!hd_turn_look(call->scheduler, call->io, end)) return false;
    call->others_ran = true;
    call->fd = rb_io_descriptor(call->io); /* raises if one of them has closed it */
    return true;
}

/* Returns the number of bytes that others have put into Ruby's read buffer, if it is the buffer of this call. */
static size_t filled_meanwhile(const hd_transfer *call, const void *bytes)
{
    return call->others_ran && call->direction == HD_READ ? hd_io_filled_meanwhile(call->io, bytes) : 0;
}

/* Makes one transfer, of at most *pointer bytes, and of at most one piece of a file. */
static ssize_t try_some(hd_transfer *call, void *pointer)
{
    size_t size, most = *(const size_t *)pointer;
    void *bytes = hd_transfer_bytes(call, &size);
    size_t there = filled_meanwhile(call, bytes);
    if (there > 0) return (ssize_t)there;
    if (RB_UNLIKELY(size > SSIZE_MAX)) /* a negative length, which pread and sysread take for a huge one */
        return hd_rw_blocking(call->direction, call->fd, bytes, size, call->from); /* the kernel refuses it */
    /* Otherwise the call is made: the kernel may have an error to report, or an empty datagram to send. */
    if (size == 0 && (call->length > 0 || call->in_part || call->flushes)) return 0;
    size = piece_of(call, size < most ? size : most);
    ssize_t moved = hd_rw_try(call->direction, call->fd, bytes, size, call->from, &call->kind);
    if (moved == -EAGAIN || moved == HD_TERMINAL_WAITS) {
        if (call->in_part) return 0;
        call->gives_up = must_not_wait(call);
        if (moved == -EAGAIN || call->gives_up) return -EAGAIN;
        return wait_for_terminal(call) ? try_some(call, pointer) : 0;
    }
    if (moved == -EINPROGRESS) {
        call->gives_up = hd_scheduler_foreign(call->scheduler);
        return call->gives_up ? -EAGAIN : move_on_worker(call, bytes, size, call->from);
    }
    call->reads_ahead = moved > 0 && call->direction == HD_READ && hd_io_reads_ahead(call->io, bytes);
    if (call->reads_ahead) hd_after_read_ahead(call->scheduler, call->io, call->fd);
    return moved;
}

/* Moves at least a byte, if there is room and the file has not ended. */
static ssize_t move_some(hd_transfer *call, size_t most)
{
    size_t size;
    void *bytes = hd_transfer_bytes(call, &size);
    bool may_wait = size > 0 && size <= SSIZE_MAX && filled_meanwhile(call, bytes) == 0;
    call->deadline_ns = 0; /* IO#timeout holds for each wait */
    return hd_transfer_run(call, may_wait && waits_first(call), try_some, &most);
}

/* Must the remaining bytes of this string be written now? IO#write would come again with them after it has written a
 * part, but first with the bytes that other fibers have put into its write buffer meanwhile, in the midst of this
 * string. IO#syswrite and IO::Buffer#write return after a part, except for a descriptor in blocking mode: there
 * write(2) waits until all is written, and hardly a program checks how many bytes that was. This case is rare enough
 * that the caller's name may be looked at. */
static bool writes_whole_strings(const hd_transfer *call)
{
    return call->direction == HD_WRITE && call->from == HD_NO_OFFSET && call->length == 0 &&
           !HD_OFFSET_BEFORE_LENGTH && (hd_called_by_io_write() || hd_in_blocking_mode(call->fd));
}

/* Returns the result of a transfer that has failed after a part. IO#write would come again to get the error. It must
 * not wait for that, because the IO may never be ready. */
static ssize_t part_or_error(const hd_transfer *call, size_t total, size_t least, ssize_t error)
{
    bool told_later = total > 0 && (least <= call->length || error == -EAGAIN);
    if (!hd_scheduler_foreign(call->scheduler) && waits_first(call)) hd_expect_to_wait(call, false);
    return told_later ? (ssize_t)total : error;
}

/* Returns the least number of bytes to move, once a part of them has been moved. */
static size_t least_after(const hd_transfer *call, size_t moved)
{
    size_t size;
    hd_transfer_bytes((hd_transfer *)call, &size);
    return size > 0 && writes_whole_strings(call) ? moved + size : call->length;
}

/* Are there more bytes of a regular file to move? Without waiting, the kernel transfers only the bytes that it has in
 * memory, or has room for. A call that may wait transfers all of them, and hardly a program checks how many that was. A
 * read that reads ahead takes fewer, and comes again. */
static bool is_part_of_file(hd_transfer *call)
{
    size_t left;
    if (call->kind != HD_MAYBE_FILE || call->reads_ahead || hd_scheduler_foreign(call->scheduler)) return false;
    hd_transfer_bytes(call, &left);
    return left > 0 && hd_is_regular_file(call->fd) && !must_not_wait(call);
}

VALUE hd_move_all(hd_transfer *call)
{
    size_t total = 0, least = call->length;
    do {
        ssize_t moved = move_some(call, MOVED_MAX - total);
        if (moved < 0) return SSIZET2NUM(part_or_error(call, total, least, moved));
        if (moved == 0) break;
        call->offset += moved;
        if (call->from != HD_NO_OFFSET) call->from += moved;
        if (total == 0) least = least_after(call, moved);
        total += moved;
        call->amid = call->direction == HD_READ;
        bool piece = moved == HD_PIECE_SIZE && piece_of(call, SIZE_MAX) == HD_PIECE_SIZE;
        call->in_part = total >= least && (piece || is_part_of_file(call));
        if (piece) let_others_run(call);
    } while (total < MOVED_MAX && (call->in_part || (!HD_OFFSET_BEFORE_LENGTH && total < least)));
    RB_GC_GUARD(call->buffer);
    RB_GC_GUARD(call->io);
    return SIZET2NUM(total);
}

hd_transfer hd_transfer_of(hd_scheduler *scheduler, hd_direction direction, VALUE io, hd_file_kind kind)
{
    return (hd_transfer){.scheduler = hd_scheduler_ready(scheduler->self), .direction = direction, .io = io,
                         .buffer = Qnil, .from = HD_NO_OFFSET, .fd = rb_io_descriptor(io), .kind = kind};
}

hd_file_kind hd_kind_of(VALUE io)
{
    if (RTEST(rb_obj_is_kind_of(io, cBasicSocket))) return HD_SOCKET;
    if (rb_io_mode(io) & FMODE_TTY) return HD_TERMINAL;
    return RTEST(rb_obj_is_kind_of(io, rb_cFile)) ? HD_MAYBE_FILE : HD_STREAM;
}

/* Writes the whole buffer of the IO, also the bytes that others append to it meanwhile. The bytes of each transfer but
 * the last are taken off the buffer here: an exception in the midst of it must not make them go out again. */
VALUE hd_flush_all(hd_transfer *call)
{
    call->flushes = true;
    for (;;) {
        ssize_t moved = move_some(call, MOVED_MAX);
        size_t size;
        hd_transfer_bytes(call, &size);
        if (moved <= 0 || (size_t)moved >= size) return SSIZET2NUM(moved);
        hd_io_flushed(call->io, moved);
    }
}

int hd_flush_locked(hd_scheduler *scheduler, VALUE io)
{
    hd_transfer call = hd_transfer_of(scheduler, HD_WRITE, io, hd_kind_of(io));
    ssize_t moved = NUM2SSIZET(hd_flush_all(&call));
    if (moved > 0) hd_io_flushed(io, (size_t)moved);
    return moved < 0 ? (int)moved : 0;
}

bool hd_is_flush(hd_transfer *call)
{
    size_t size;
    return call->direction == HD_WRITE && call->length == 0 && call->from == HD_NO_OFFSET &&
           hd_io_flushes(call->io, hd_transfer_bytes(call, &size));
}

/* Looks for another reader. Others may have run when one was found. */
void hd_transfer_meets_reader(hd_transfer *call)
{
    unsigned parks = call->scheduler->running.parks;
    call->fd = hd_before_read(call->scheduler, call->io, call->fd);
    call->others_ran |= parks != call->scheduler->running.parks;
}

void hd_init_transfer(void)
{
    rb_require("socket");
    cBasicSocket = rb_const_get(rb_cObject, rb_intern("BasicSocket"));
    eTimeoutError = rb_const_get(rb_cIO, rb_intern("TimeoutError"));
    rb_gc_register_mark_object(cBasicSocket);
    rb_gc_register_mark_object(eTimeoutError);
}
