/* Heddle::IdleSet::Poller: a set of sockets for which no fiber waits. It is an epoll object, whose descriptor is
 * readable when one of its sockets is. Each socket is reported once. kqueue can do the same: its descriptor can be
 * waited for, too. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "fibers/scheduler.h"
#include "ruby/init.h"

enum { TAKEN_AT_ONCE = 256 };

/* Creates a set and returns its descriptor. */
static VALUE create(VALUE self)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) rb_sys_fail("epoll_create1");
    return INT2FIX(fd);
}

static int watch(VALUE set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.fd = fd};
    return epoll_ctl(rb_io_descriptor(set), EPOLL_CTL_ADD, fd, &event);
}

static VALUE add(VALUE self, VALUE set, VALUE socket)
{
    int fd = rb_io_descriptor(socket);
    if (watch(set, fd) < 0) rb_sys_fail("epoll_ctl");
    return INT2FIX(fd);
}

/* Creates a descriptor that can always be read. */
static VALUE bell(VALUE self)
{
    int fd = eventfd(1, EFD_CLOEXEC);
    if (fd < 0) rb_sys_fail("eventfd");
    return INT2FIX(fd);
}

/* Makes the set readable: the bell is in it until the next take. */
static VALUE ring(VALUE self, VALUE set, VALUE own_bell)
{
    if (watch(set, rb_io_descriptor(own_bell)) < 0 && errno != EEXIST) rb_sys_fail("epoll_ctl");
    return Qnil;
}

/* Has Ruby already read bytes of the socket? */
static VALUE has_buffered(VALUE self, VALUE socket)
{
    rb_io_t *pointer;
    GetOpenFile(socket, pointer);
    return HD_BOOL(rb_io_read_pending(pointer));
}

static VALUE delete(VALUE self, VALUE set, VALUE fd)
{
    if (epoll_ctl(rb_io_descriptor(set), EPOLL_CTL_DEL, FIX2INT(fd), NULL) < 0 && errno != ENOENT && errno != EBADF)
        rb_sys_fail("epoll_ctl");
    return Qnil;
}

/* Takes the sockets that have something to read out of the set. Returns their objects, which it removes from the hash
 * of objects by descriptors. */
static VALUE take(VALUE self, VALUE set, VALUE objects)
{
    struct epoll_event events[TAKEN_AT_ONCE];
    int epoll_fd = rb_io_descriptor(set);
    int count = epoll_wait(epoll_fd, events, TAKEN_AT_ONCE, 0);
    if (count < 0 && errno != EINTR) rb_sys_fail("epoll_wait");
    VALUE found = rb_ary_new();
    for (int i = 0; i < count; i++) {
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
        VALUE object = rb_hash_delete(objects, INT2FIX(events[i].data.fd));
        if (!NIL_P(object)) rb_ary_push(found, object);
    }
    return found;
}

void hd_init_idle_set(void)
{
    VALUE poller = rb_define_module_under(rb_define_class_under(hd_mHeddle, "IdleSet", rb_cObject), "Poller");
    rb_define_singleton_method(poller, "create", create, 0);
    rb_define_singleton_method(poller, "add", add, 2);
    rb_define_singleton_method(poller, "buffered?", has_buffered, 1);
    rb_define_singleton_method(poller, "bell", bell, 0);
    rb_define_singleton_method(poller, "ring", ring, 2);
    rb_define_singleton_method(poller, "delete", delete, 2);
    rb_define_singleton_method(poller, "take", take, 2);
}
