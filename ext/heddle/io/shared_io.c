/* A report when two tasks read from one stream. See shared_io.h for the interface.
 *
 * The problem: two tasks that read from one connection may get each other's answers. The cause is nearly always a
 * library that keys connections by thread (Excon, Sequel and ActiveRecord by default). Nobody else can notice it.
 *
 * The way: the table of the IO's waiters knows who waits. When a fiber is about to read, and another task waits to read
 * from the same IO, Heddle warns, raises or ignores it. This file has the checks: the mode, the kind of the IO, and the
 * waiters. lib/heddle/internal/shared_io.rb makes the report.
 *
 * The price: a look at that table before each read. Two readers are noticed only while one of them waits. */
#include <sys/socket.h>

#include "shared_io.h"

#include "core/interest.h"
#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/read_ahead.h"
#include "ruby/init.h"

/* What Heddle does when two tasks read from one stream: :warn, :raise or :ignore. It holds for the process. */
static VALUE mode, sym_ignore;
static ID id_shared; /* marks the IOs that tasks may share */

/* Returns the wait of another task that waits to read, or NULL. A fiber that the same task has resumed is not another
 * task. */
static const hd_wait *other_reader(const hd_map *ios, VALUE io, int fd, VALUE root)
{
    hd_map_node *node = hd_map_find(ios, (hd_word)fd);
    for (; node; node = hd_map_find_next(ios, node)) {
        const hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, io_node);
        if (interest->wait->root != (hd_word)root && hd_reads_from(interest, io)) return interest->wait;
    }
    return NULL;
}

/* Does a question go out on this IO, and its answer come in? True for a connection, and for the two pipes of an
 * IO.popen("r+"). False for IOs that are made to be shared: a listening socket, a socket of datagrams, a pipe. */
static bool has_answers(VALUE io, int fd)
{
    int type = 0, listens = 0;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0) return rb_io_get_write_io(io) != io;
    size = sizeof(int);
    return type == SOCK_STREAM && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens;
}

int hd_after_those_before(hd_scheduler *scheduler, VALUE io, int fd)
{
    hd_reactor *reactor = &scheduler->reactor;
    reactor->ops->reap(reactor->backend);
    if (reactor->received == 0) return fd;
    hd_map_node *node = hd_map_find(reactor->ios, (hd_word)fd);
    for (; node; node = hd_map_find_next(reactor->ios, node)) {
        const hd_interest *interest = HD_CONTAINER_OF(node, hd_interest, io_node);
        if (!hd_interest_received(interest) || interest->wait->reactor != reactor) continue;
        hd_yield(scheduler);
        return rb_io_descriptor(io);
    }
    return fd;
}

int hd_meet_reader(hd_scheduler *scheduler, VALUE io, int fd)
{
    if (hd_scheduler_foreign(scheduler)) return fd;
    fd = hd_after_those_before(scheduler, io, fd);
    if (mode == sym_ignore) return fd;
    VALUE root = hd_root(scheduler);
    const hd_wait *wait = other_reader(scheduler->reactor.ios, io, fd, root);
    if (!wait || !has_answers(io, fd) || RTEST(rb_attr_get(io, id_shared))) return fd;
    rb_funcall(rb_const_get(hd_mHeddle, rb_intern("SharedIO")), rb_intern("met"), 4, io, root, (VALUE)wait->root,
               (VALUE)hd_wait_fiber(wait));
    return rb_io_descriptor(io);
}

static VALUE get_mode(VALUE self)
{
    return mode;
}

static VALUE set_mode(VALUE self, VALUE wanted)
{
    if (wanted != sym_ignore && wanted != ID2SYM(rb_intern("warn")) && wanted != ID2SYM(rb_intern("raise")))
        rb_raise(rb_eArgError, "shared_io: must be :warn, :raise or :ignore, not %+" PRIsVALUE, wanted);
    return mode = wanted;
}

static VALUE allow(VALUE self, VALUE io)
{
    return rb_ivar_set(io, id_shared, Qtrue);
}

void hd_init_shared_io(void)
{
    id_shared = rb_intern("heddle_shared");
    sym_ignore = ID2SYM(rb_intern("ignore"));
    mode = ID2SYM(rb_intern("warn"));
    rb_define_singleton_method(hd_mHeddle, "shared_io", get_mode, 0);
    rb_define_singleton_method(hd_mHeddle, "shared_io=", set_mode, 1);
    VALUE shared_io = rb_define_module_under(hd_mHeddle, "SharedIO");
    rb_define_singleton_method(shared_io, "allow", allow, 1);
}
