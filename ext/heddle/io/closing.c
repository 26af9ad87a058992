/* The close of an IO that fibers wait on. See closing.h for the interface.
 *
 * The problem: when Ruby closes a descriptor, a fiber that is parked for it never hears of the close. A poll request of
 * io_uring also holds the file open, so that the peer would see no FIN. And the number of the descriptor may soon
 * belong to another file.
 *
 * The way: waiters are kept for each IO object. A close wakes the waiters of its object with IOError and writes the
 * buffer. Then it lets the waiters leave while the IO already looks closed to them, and makes the kernel let go of the
 * file. Only then does Ruby close the IO. Afterwards the close wakes the fibers that have begun to wait meanwhile, and
 * the waiters of twins. A twin is another IO object with the same descriptor, made with IO.for_fd. If an exception was
 * raised in the closer meanwhile, it is raised again at the end. hd_close_for takes these steps in their order.
 *
 * Rejected: waiters by the number of the descriptor. A close must wake the waiters of its own object only, and the
 * number may be another file's by the time they run.
 *
 * The price: a close of an IO with waiters lets other fibers run. The number of turns that it waits for them is
 * bounded, because the ensure block of a waiter may wait for the closer.
 *
 * Sources: guides/design.md (Close); fptr_finalize_flush in Ruby's io.c. */
#include "closing.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fibers/inline_call.h"
#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/turn.h"
#include "flush.h"
#include "ruby/caught.h"
#include "ruby/ruby_internals.h"
#include "transfer.h"
#include "way.h"

enum { UNWIND_TURNS_MAX = 1000, ALL_EVENTS = POLLIN | POLLPRI | POLLOUT };

static VALUE closed_error(void)
{
    return rb_exc_new_cstr(rb_eIOError, "stream closed in another thread");
}

static hd_interest *next_interest(hd_interest *interest)
{
    hd_map_node *node = hd_map_find_next(hd_io_table(), &interest->io_node);
    return node ? HD_CONTAINER_OF(node, hd_interest, io_node) : NULL;
}

static hd_interest *first_interest(int fd)
{
    hd_map_node *node = hd_map_find(hd_io_table(), (hd_word)fd);
    return node ? HD_CONTAINER_OF(node, hd_interest, io_node) : NULL;
}

/* An IO that a close is about to close: one object, or one of two (popen "r+" has a second IO for writing). */
typedef struct {
    VALUE io;
    int fd;
    bool keeps_open; /* the object does not own the descriptor, which stays open: twins go on waiting */
    hd_hidden_io hidden;
} closing_io;

typedef struct {
    hd_scheduler *scheduler; /* the scheduler of the closer's thread, or NULL */
    closing_io parts[2];
    int count;
    bool waiters, twins;
    /* An exception raised in the closer meanwhile, which is raised again when the IO is closed; or nil. */
    VALUE raised;
} close_call;

static void add_part(close_call *closing, VALUE io)
{
    int fd = RB_TYPE_P(io, T_FILE) ? hd_io_descriptor(io) : -1;
    if (fd < 0) return;
    bool keeps_open = fd <= STDERR_FILENO || hd_io_mode(io) & FMODE_EXTERNAL; /* as in Ruby's fptr_finalize_flush */
    closing->parts[closing->count++] = (closing_io){.io = io, .fd = fd, .keeps_open = keeps_open};
}

/* Ends a wait with IOError if its IO is ready but its fiber has not run yet: the fiber would find the descriptor gone.
 * A wait that an exception has ended is treated alike, because that exception may have been withdrawn before the fiber
 * runs. */
static void close_before_it_runs(hd_wait *wait)
{
    bool event = wait->wake == HD_WOKEN_BY_EVENT, exception = wait->wake == HD_WOKEN_BY_EXCEPTION && !wait->exception;
    if (wait->state != HD_WAIT_READY || wait->kind != HD_WAIT_FOR_IO || !(event || exception)) return;
    if (hd_wait_answered(wait)) return; /* the bytes have been received, the descriptor is not needed */
    wait->wake = HD_WOKEN_BY_EXCEPTION;
    wait->exception = (hd_word)closed_error();
}

/* Marks the waiters of a twin (made with IO.for_fd): they are woken when the descriptor is gone. */
static void mark_twins(close_call *closing, const closing_io *part)
{
    for (hd_interest *interest = first_interest(part->fd); interest; interest = next_interest(interest)) {
        if (interest->io == (hd_word)part->io) continue;
        interest->closing = !part->keeps_open;
        closing->twins |= interest->closing;
    }
}

/* Wakes the waiters of this object, and marks those of twins. */
static void interrupt_waiters(close_call *closing, const closing_io *part)
{
    mark_twins(closing, part);
    for (hd_interest *interest = first_interest(part->fd); interest; interest = next_interest(interest)) {
        hd_wait *wait = interest->wait;
        if (interest->io != (hd_word)part->io) continue;
        if (wait->state == HD_WAIT_PARKED) hd_end_operation(wait, closed_error());
        close_before_it_runs(wait);
        closing->waiters = interest->leaving = true;
    }
}

static hd_interest *waiter_of(const closing_io *part)
{
    hd_interest *interest = first_interest(part->fd);
    while (interest && (interest->io != (hd_word)part->io || !interest->leaving)) interest = next_interest(interest);
    return interest;
}

/* Lets the woken waiters run until none holds the IO. The waiters of this thread run while the closer stands at the end
 * of the ready queue; for the waiters of other threads the closer yields the GVL. The number of turns is bounded,
 * because the ensure block of a waiter may wait for the closer: the close then goes on without that waiter. */
static VALUE let_unwind(VALUE pointer)
{
    close_call *closing = (void *)pointer;
    for (int i = 0; i < closing->count; i++) {
        for (int turns = 0; turns < UNWIND_TURNS_MAX; turns++) {
            hd_interest *interest = waiter_of(&closing->parts[i]);
            if (!interest) break;
            if (closing->scheduler && interest->wait->reactor == &closing->scheduler->reactor)
                hd_yield(closing->scheduler);
            else
                rb_thread_wait_for((struct timeval){0, turns < 10 ? 0 : 1000});
        }
    }
    return Qnil;
}

static void withdraw(hd_interest *interest)
{
    hd_reactor *reactor = interest->wait->reactor;
    if (!reactor->backend || !reactor->ops->withdraw) return;
    reactor->ops->withdraw(reactor->backend, interest, reactor->rests);
}

/* Makes the kernel let go of the requests of the fibers that still wait. These are the waiters of twins, which are
 * woken when the descriptor is gone, or a waiter of another thread, which may not have left because that thread is busy
 * with something else. */
static void withdraw_those(const closing_io *part, bool twins)
{
    for (hd_interest *interest = first_interest(part->fd); interest; interest = next_interest(interest))
        if (twins ? interest->closing : interest->leaving) withdraw(interest);
}

static void release_file(hd_scheduler *scheduler)
{
    if (scheduler && hd_scheduler_turns_here(scheduler))
        scheduler->reactor.ops->release_files(scheduler->reactor.backend);
}

static void interrupt_all(close_call *closing)
{
    for (int i = 0; i < closing->count; i++) interrupt_waiters(closing, &closing->parts[i]);
}

static bool has_to_flush(const close_call *closing)
{
    for (int i = 0; i < closing->count; i++)
        if (hd_io_has_to_flush(closing->parts[i].io)) return true;
    return false;
}

static VALUE flush(VALUE pointer)
{
    close_call *closing = (void *)pointer;
    for (int i = 0; i < closing->count; i++)
        if (hd_io_has_to_flush(closing->parts[i].io)) hd_flush(closing->parts[i].io);
    return Qnil;
}

static void show(close_call *closing)
{
    for (int i = 0; i < closing->count; i++) hd_io_show(&closing->parts[i].hidden);
}

/* Returns the exception that comes out of the function, or nil. A jump that ends the fiber goes on. */
static VALUE exception_of(VALUE (*function)(VALUE), close_call *closing)
{
    hd_caught caught;
    hd_catch(function, (VALUE)closing, &caught);
    if (!caught.state || !NIL_P(caught.exception)) return caught.exception;
    show(closing);
    rb_jump_tag(caught.state);
}

/* Writes the buffer while other fibers may still wait for the IO. Returns false if it could not be written; Ruby will
 * raise the error. */
static bool write_buffer(close_call *closing)
{
    if (!has_to_flush(closing)) return true;
    VALUE raised = exception_of(flush, closing);
    if (!NIL_P(raised) && !RTEST(rb_obj_is_kind_of(raised, rb_eSystemCallError))) rb_exc_raise(raised);
    interrupt_all(closing);
    return !has_to_flush(closing);
}

/* Lets the waiters run. With hide, the IO already looks closed to them, as with threads: a waiter that tries again must
 * find it closed, and not wait on it once more. */
static void let_waiters_leave(close_call *closing, bool hide)
{
    for (int i = 0; i < closing->count && hide; i++) closing->parts[i].hidden = hd_io_hide(closing->parts[i].io);
    closing->raised = exception_of(let_unwind, closing);
    show(closing);
    if (!hide && !NIL_P(closing->raised)) rb_exc_raise(closing->raised);
}

/* Takes the steps before the descriptor is closed. */
static void clear_the_way(close_call *closing, bool hide)
{
    interrupt_all(closing);
    if (closing->waiters) let_waiters_leave(closing, hide && write_buffer(closing));
    /* a waiter that has left may have let another fiber begin to wait for a twin */
    for (int i = 0; i < closing->count && closing->waiters; i++) mark_twins(closing, &closing->parts[i]);
    for (int i = 0; i < closing->count && closing->waiters; i++) withdraw_those(&closing->parts[i], false);
    release_file(closing->scheduler);
}

/* Collects the IOs to be closed for the directions POLLIN, POLLOUT or both. */
static close_call closing_of(VALUE io, short directions)
{
    close_call closing = {.scheduler = hd_scheduler_of_thread(), .raised = Qnil};
    if (RB_TYPE_P(io, T_FILE)) {
        VALUE write_io = rb_io_get_write_io(io);
        if (write_io != io && directions & POLLOUT) add_part(&closing, write_io);
        if (write_io == io || directions & POLLIN) add_part(&closing, io);
    }
    return closing;
}

static void wake_to_look_again(hd_interest *interest, short events)
{
    if (interest->wait->state != HD_WAIT_PARKED || !(interest->events & events)) return;
    interest->revents = interest->events & events;
    hd_wake_wait(interest->wait, HD_WOKEN_BY_EVENT);
}

/* Wakes a waiter when the descriptor is gone, because it would never hear of that: a twin's with EBADF. It must not
 * look again: the number may be another file's by then. A wait without an IO object (for a child) does look again. */
static void wake_twin(hd_interest *interest)
{
    if (NIL_P((VALUE)interest->io))
        wake_to_look_again(interest, ALL_EVENTS);
    else if (interest->wait->state == HD_WAIT_PARKED)
        hd_end_operation(interest->wait, rb_syserr_new(EBADF, NULL));
}

/* Ends the marks that interrupt_waiters has made. The descriptor is gone, or it is still there because the close has
 * failed. */
static void end_marks(int fd, bool gone)
{
    for (hd_interest *interest = first_interest(fd); interest; interest = next_interest(interest)) {
        if (interest->closing && gone)
            wake_twin(interest);
        else if (interest->closing)
            wake_to_look_again(interest, ALL_EVENTS); /* its request may have been withdrawn */
        interest->closing = false;
    }
}

/* Wakes the fibers that have begun to wait for the object while it was still open. */
static void wake_latecomers(const closing_io *part)
{
    for (hd_interest *interest = first_interest(part->fd); interest; interest = next_interest(interest))
        if (interest->io == (hd_word)part->io)
            hd_end_operation(interest->wait, closed_error());
}

static VALUE after_close(VALUE pointer)
{
    close_call *closing = (void *)pointer;
    for (int i = 0; i < closing->count; i++) {
        const closing_io *part = &closing->parts[i];
        bool closed = hd_io_descriptor(part->io) != part->fd;
        if (closed) wake_latecomers(part);
        if (closing->twins) end_marks(part->fd, closed && !part->keeps_open);
    }
    release_file(closing->scheduler);
    return Qnil;
}

static VALUE flush_before_ruby_does(VALUE io)
{
    hd_flush_before_ruby_does(io);
    return Qnil;
}

static VALUE ruby_will_say_so(VALUE io, VALUE error)
{
    (void)io, (void)error;
    return Qnil;
}

/* A call of one of Ruby's own methods: close, close_read or close_write. */
typedef struct {
    VALUE io;
    ID kept;
} ruby_close;

static VALUE close_by_ruby(VALUE pointer)
{
    const ruby_close *call = (void *)pointer;
    if (HD_FLUSH_PASSES_BY_IO_WRITE)
        rb_rescue2(flush_before_ruby_does, call->io, ruby_will_say_so, Qnil, rb_eSystemCallError, (VALUE)0);
    return rb_funcallv(call->io, call->kept, 0, NULL);
}

static bool is_open_file(VALUE io)
{
    struct stat status;
    int fd = RB_TYPE_P(io, T_FILE) ? hd_io_descriptor(io) : -1;
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

/* Closes an IO even if an exception is raised in its fiber while the buffer is written, where Ruby would leave the IO
 * open. A file takes all bytes, so it is written and closed before the exception goes on. Other IOs are left as Ruby
 * leaves them: a peer that reads nothing must not keep the fiber from ending. */
static VALUE close_after_exceptions(VALUE pointer)
{
    hd_caught first, failed;
    VALUE result = hd_catch(close_by_ruby, pointer, &first);
    if (!first.state) return result;
    bool killed = hd_is_kill(&first);
    if ((NIL_P(first.exception) && !killed) || !is_open_file(((ruby_close *)pointer)->io)) hd_go_on(&first);
    result = hd_catch(close_by_ruby, pointer, &failed);
    if (!killed) rb_exc_raise(first.exception);
    hd_go_on(&failed);
    rb_set_errinfo(Qnil);
    return result; /* Ruby kills the fiber again at the end of the next switch to it */
}

/* Closes an IO inline. Ruby 3.4 offers every close to a worker, where a cancel could keep it from being done; it is
 * done inline as on the other Rubies. closer.c also learns from this record which fiber closes. */
static VALUE close_io(VALUE pointer)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler ? hd_call_inline(scheduler, HD_FRAME_CLOSE, close_after_exceptions, pointer)
                     : close_by_ruby(pointer);
}

/* Forgets what was learned about this IO. It does not hold for the next IO with that number, or for another file of
 * this IO. */
static void forget_guesses(const close_call *closing)
{
    for (int i = 0; closing->scheduler && i < closing->count; i++)
        hd_forget_way(closing->scheduler, closing->parts[i].fd);
}

VALUE hd_close_for(VALUE io, ID kept, short directions)
{
    ruby_close call = {io, kept};
    if (hd_io_table()->count == 0 && !hd_scheduler_of_thread()) return close_by_ruby((VALUE)&call); /* no fiber waits */
    close_call closing = closing_of(io, directions);
    if (closing.scheduler) closing.scheduler->counted.closes++;
    /* 1. Wake the waiters. 2. Write the buffer. 3. Let the waiters leave. 4. Make the kernel let go of the file. */
    clear_the_way(&closing, true);
    for (int i = 0; i < closing.count && closing.twins; i++) withdraw_those(&closing.parts[i], true);
    /* 5. Ruby closes the IO. 6. Wake the fibers that have begun to wait meanwhile, and the waiters of twins. */
    bool hidden = closing.count > 0 && closing.parts[0].hidden.insides; /* no fiber can have begun to wait since */
    bool others = (closing.waiters && !hidden) || closing.twins || has_to_flush(&closing);
    VALUE result = others ? rb_ensure(close_io, (VALUE)&call, after_close, (VALUE)&closing) : close_io((VALUE)&call);
    forget_guesses(&closing);
    /* 7. Raise the exception that was raised in the closer meanwhile. */
    if (!NIL_P(closing.raised)) rb_exc_raise(closing.raised);
    if (closing.scheduler) hd_turn_spend(closing.scheduler, Qnil, HD_TURN_ENDS_AMID);
    return result;
}

bool hd_stays_open(VALUE io, int other_direction)
{
    struct stat status;
    int fd = RB_TYPE_P(io, T_FILE) && rb_io_get_write_io(io) == io ? hd_io_descriptor(io) : -1;
    if (fd < 0 || fstat(fd, &status) < 0) return false;
    int duplex = S_ISSOCK(status.st_mode) ? 0 : FMODE_DUPLEX;
    return (hd_io_mode(io) & (duplex | other_direction)) == other_direction;
}

VALUE hd_shut_down(VALUE io, ID kept, short events)
{
    closing_io part = {.io = io, .fd = hd_io_descriptor(io)};
    VALUE result = rb_funcallv(io, kept, 0, NULL); /* Ruby writes no buffer here */
    if (hd_io_descriptor(io) != part.fd) wake_latecomers(&part);
    for (hd_interest *interest = first_interest(part.fd); interest; interest = next_interest(interest))
        wake_to_look_again(interest, events);
    return result;
}

VALUE hd_reopen(VALUE io, ID kept, int argc, VALUE *argv)
{
    close_call closing = {.scheduler = hd_scheduler_of_thread(), .raised = Qnil};
    add_part(&closing, io);
    clear_the_way(&closing, false);
    hd_flush_before_ruby_does(io);
    VALUE result = rb_funcallv_kw(io, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    forget_guesses(&closing);
    for (int i = 0; i < closing.count; i++) {
        wake_latecomers(&closing.parts[i]);
        hd_interest *interest = first_interest(closing.parts[i].fd);
        for (; interest; interest = next_interest(interest)) wake_to_look_again(interest, ALL_EVENTS);
    }
    return result;
}

void hd_wake_waiters(VALUE io)
{
    close_call closing = closing_of(io, POLLIN | POLLOUT);
    clear_the_way(&closing, true);
    if (!NIL_P(closing.raised)) rb_exc_raise(closing.raised);
}

int hd_close_descriptor(int fd)
{
    hd_interest *interest = first_interest(fd);
    for (; interest; interest = next_interest(interest)) withdraw(interest);
    int result = close(fd), error = errno;
    for (interest = first_interest(fd); interest; interest = next_interest(interest)) wake_twin(interest);
    return result < 0 && error != EINTR ? -error : 0;
}

static bool is_of_operation(const hd_wait *wait)
{
    bool kind = wait->kind == HD_WAIT_FOR_IO || wait->kind == HD_WAIT_FOR_SELECT || wait->kind == HD_WAIT_FOR_WORKER;
    return kind && wait->state == HD_WAIT_PARKED;
}

/* Returns the wait of the fiber for an operation on an IO, or NULL. A signal handler may wait on top of it. */
static hd_wait *operation_of(const hd_scheduler *scheduler, VALUE fiber)
{
    const hd_map *waits = &scheduler->reactor.waits;
    hd_wait *last = NULL;
    for (hd_map_node *node = hd_map_find(waits, (hd_word)fiber); node; node = hd_map_find_next(waits, node)) {
        hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
        if (is_of_operation(wait)) last = wait;
    }
    return last;
}

bool hd_interrupt_operation(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    hd_wait *operation = operation_of(scheduler, fiber);
    return operation && hd_end_operation(operation, exception);
}
