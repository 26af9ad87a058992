/* Closing an IO that fibers wait on: the hooks io_close and fiber_interrupt, and the methods that are prepended to
 * IO#close, close_read, close_write and reopen.
 *
 * Waiters belong to an IO object, not to a descriptor number. A close wakes exactly the waiters of that object,
 * once, with IOError, lets them unwind, makes the kernel let go of the file, and only then closes it. */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_internals.h"
#include "park.h"
#include "quick.h"

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

/* The number of an open IO, or -1. */
static int descriptor_of(VALUE io)
{
    if (!RFILE(io)->fptr || RTEST(rb_io_closed_p(io))) return -1;
    return rb_io_descriptor(io);
}

typedef struct {
    VALUE io;
    int fd;
    short events;   /* POLLIN | POLLPRI, POLLOUT, or all */
    size_t waiters; /* of this object */
    bool twins;     /* other objects with this descriptor have waiters */
} closing;

/* Wakes the waiters of this object for these events. Those of a twin (made with IO.for_fd) are marked: they are woken
 * when the descriptor is gone. */
static closing interrupt_waiters(VALUE io, short events)
{
    closing closing = {.io = io, .fd = descriptor_of(io), .events = events};
    if (closing.fd < 0) return closing;
    for (hd_interest *interest = first_interest(closing.fd); interest; interest = next_interest(interest)) {
        hd_wait *wait = interest->wait;
        if (!(interest->events & events)) continue;
        if (interest->io != (hd_word)io) {
            closing.twins = interest->closing = true;
            continue;
        }
        if (wait->state == HD_WAIT_PARKED) hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION, closed_error());
        closing.waiters++;
    }
    return closing;
}

static hd_interest *waiter_of(const closing *closing)
{
    hd_interest *interest = first_interest(closing->fd);
    while (interest && (interest->io != (hd_word)closing->io || !(interest->events & closing->events)))
        interest = next_interest(interest);
    return interest;
}

/* Lets the woken waiters run until none holds the IO. Those of this thread run while the closer stands at the end
 * of the ready queue; for those of other threads the closer yields the GVL. The bound is for a waiter whose ensure
 * block waits for the closer: the close then goes on without it. */
static void let_unwind(hd_scheduler *scheduler, const closing *closing)
{
    for (int turns = 0; closing->waiters && turns < UNWIND_TURNS_MAX; turns++) {
        hd_interest *interest = waiter_of(closing);
        if (!interest) return;
        if (interest->wait->state == HD_WAIT_PARKED) /* it has begun to wait since */
            hd_wake_wait(interest->wait, HD_WOKEN_BY_EXCEPTION, closed_error());
        if (scheduler && interest->wait->reactor == &scheduler->reactor)
            hd_park_turn(scheduler);
        else
            rb_thread_wait_for((struct timeval){0, turns < 10 ? 0 : 1000});
    }
}

static void release_file(hd_scheduler *scheduler)
{
    if (scheduler && scheduler->reactor.backend && !hd_scheduler_foreign(scheduler))
        scheduler->reactor.ops->flush(scheduler->reactor.backend);
}

static closing before_close(VALUE io, short events)
{
    if (!RB_TYPE_P(io, T_FILE)) return (closing){.fd = -1};
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    closing closing = interrupt_waiters(io, events);
    let_unwind(scheduler, &closing);
    release_file(scheduler);
    return closing;
}

/* The descriptor is gone, but a twin's waiter would never hear of it: it gets EBADF. (It must not look again: the
 * number may be another file's by then.) Of all, or of those that were marked before. */
static void wake_twins(int fd, bool all)
{
    for (hd_interest *interest = first_interest(fd); interest; interest = next_interest(interest)) {
        hd_wait *wait = interest->wait;
        if ((!interest->closing && !all) || wait->state != HD_WAIT_PARKED) continue;
        interest->revents = interest->events;
        if (NIL_P((VALUE)interest->io))
            hd_wake_wait(wait, HD_WOKEN_BY_EVENT, Qnil);
        else
            hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION, rb_syserr_new(EBADF, NULL));
    }
}

static VALUE after_close(VALUE fd)
{
    wake_twins((int)fd, false);
    release_file(hd_scheduler_of_thread());
    return Qnil;
}

static VALUE close_by_super(VALUE io)
{
    (void)io;
    return rb_call_super(0, NULL);
}

static bool is_open_file(VALUE io)
{
    struct stat status;
    int fd = RB_TYPE_P(io, T_FILE) ? descriptor_of(io) : -1;
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

/* A cancel may strike while the buffer is written, and Ruby leaves the IO open then. A file can take it all: it is
 * written and closed before the exception goes on. (A peer that reads nothing must not keep the fiber from ending.) */
static VALUE close_even_if_struck(VALUE io)
{
    int state = 0, failed = 0;
    VALUE result = rb_protect(close_by_super, io, &state);
    if (!state) return result;
    VALUE error = rb_errinfo();
    if (!RTEST(rb_obj_is_kind_of(error, rb_eException)) || !is_open_file(io)) rb_jump_tag(state);
    rb_protect(close_by_super, io, &failed);
    rb_exc_raise(error);
}

/* Ruby 3.4 offers every close to a worker, where a cancel could keep it from being done. As on the other Rubies, it is
 * done on the spot. (And closer.c knows by this who closes.) */
static VALUE close_io(VALUE io)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler ? hd_quickly(scheduler, close_even_if_struck, io) : rb_call_super(0, NULL);
}

/* Closes by the method of the class, which may be a half close. */
static VALUE close_for(VALUE io, VALUE closed, short events)
{
    closing closing = before_close(closed, events);
    return closing.twins ? rb_ensure(close_io, io, after_close, (VALUE)closing.fd) : close_io(io);
}

/* popen "r+" has a second IO for writing. */
static VALUE write_io_of(VALUE io)
{
    return RB_TYPE_P(io, T_FILE) ? rb_io_get_write_io(io) : io;
}

static VALUE io_close(VALUE io)
{
    VALUE write_io = write_io_of(io);
    if (write_io != io) before_close(write_io, ALL_EVENTS);
    return close_for(io, io, ALL_EVENTS);
}

static VALUE io_close_read(VALUE io)
{
    bool has_write_io = write_io_of(io) != io;
    VALUE result = close_for(io, io, POLLIN | POLLPRI);
    if (has_write_io) hd_io_take_over(io);
    return result;
}

static VALUE io_close_write(VALUE io)
{
    return close_for(io, write_io_of(io), POLLOUT);
}

static VALUE io_reopen(int argc, VALUE *argv, VALUE io)
{
    before_close(io, ALL_EVENTS);
    return rb_call_super_kw(argc, argv, RB_PASS_CALLED_KEYWORDS);
}

/* For what Ruby is about to close without the method IO#close. */
static VALUE io_wake_waiters(VALUE self, VALUE io)
{
    (void)self;
    VALUE write_io = write_io_of(io);
    if (write_io != io) before_close(write_io, ALL_EVENTS);
    before_close(io, ALL_EVENTS);
    return Qnil;
}

/* Closes the descriptor on the spot. It runs inside GC finalizers too, so it never switches fibers; without it
 * Ruby 4.0 would send every close of a writable descriptor to a worker.
 *
 * @param fd [Integer]
 * @return [true] */
static VALUE hook_io_close(VALUE self, VALUE fd)
{
    hd_scheduler_get(self);
    int result = close(NUM2INT(fd));
    int error = errno;
    wake_twins(NUM2INT(fd), true);
    if (result < 0 && error != EINTR && !rb_during_gc()) rb_syserr_fail(error, NULL);
    return Qtrue;
}

/* Ruby 4.0 calls it when an IO that the fiber uses is closed. A fiber that is no longer parked has finished its
 * operation, and the error would land in a later one (Bug #21918): it is dropped, and Ruby raises by itself when
 * the fiber next touches the IO.
 *
 * @param fiber [Fiber]
 * @param exception [Exception] */
static VALUE hook_fiber_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_wait *wait = hd_wait_of(scheduler, fiber);
    if (wait)
        hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION, exception);
    else if (RTEST(rb_obj_is_fiber(fiber)) && RTEST(rb_funcall(fiber, rb_intern("blocking?"), 0)) &&
             !NIL_P(scheduler->thread) && hd_scheduler_foreign(scheduler))
        rb_funcall(scheduler->thread, rb_intern("raise"), 1, exception); /* it blocks natively: nobody else wakes it */
    return Qnil;
}

void hd_init_hooks_close(void)
{
    rb_define_method(hd_cScheduler, "io_close", hook_io_close, 1);
    rb_define_method(hd_cScheduler, "fiber_interrupt", hook_fiber_interrupt, 2);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    VALUE close = rb_define_module_under(core_ext, "IOClose");
    rb_define_method(close, "close", io_close, 0);
    rb_define_method(close, "reopen", io_reopen, -1);
    rb_define_singleton_method(close, "wake_waiters", io_wake_waiters, 1);
    VALUE half_close = rb_define_module_under(core_ext, "IOHalfClose");
    rb_define_method(half_close, "close_read", io_close_read, 0);
    rb_define_method(half_close, "close_write", io_close_write, 0);
}
