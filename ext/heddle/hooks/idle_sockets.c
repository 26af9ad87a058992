/* A set of sockets for which no fiber waits: an epoll object, whose descriptor is readable when one of its sockets is.
 * The server keeps its idle connections in it. Each socket is reported once. */
#include <errno.h>
#include <sys/epoll.h>

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

static VALUE add(VALUE self, VALUE set, VALUE socket)
{
    int fd = rb_io_descriptor(socket);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.fd = fd};
    if (epoll_ctl(rb_io_descriptor(set), EPOLL_CTL_ADD, fd, &event) < 0) rb_sys_fail("epoll_ctl");
    return INT2FIX(fd);
}

static VALUE delete(VALUE self, VALUE set, VALUE fd)
{
    if (epoll_ctl(rb_io_descriptor(set), EPOLL_CTL_DEL, FIX2INT(fd), NULL) < 0 && errno != ENOENT && errno != EBADF)
        rb_sys_fail("epoll_ctl");
    return Qnil;
}

/* Takes the sockets that have something to read out of the set, and returns their descriptors. */
static VALUE take(VALUE self, VALUE set)
{
    struct epoll_event events[TAKEN_AT_ONCE];
    int epoll_fd = rb_io_descriptor(set);
    int count = epoll_wait(epoll_fd, events, TAKEN_AT_ONCE, 0);
    if (count < 0 && errno != EINTR) rb_sys_fail("epoll_wait");
    VALUE fds = rb_ary_new();
    for (int i = 0; i < count; i++) {
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
        rb_ary_push(fds, INT2FIX(events[i].data.fd));
    }
    return fds;
}

void hd_init_idle_sockets(void)
{
    VALUE epoll = rb_define_module_under(hd_mHeddle, "Epoll");
    rb_define_singleton_method(epoll, "create", create, 0);
    rb_define_singleton_method(epoll, "add", add, 2);
    rb_define_singleton_method(epoll, "delete", delete, 2);
    rb_define_singleton_method(epoll, "take", take, 1);
}
