/* Heddle::IdleSet::Poller: a set of sockets for which no fiber waits. It is an epoll object or a kqueue. Its descriptor
 * is readable when one of its sockets is. Each socket is reported once. Where the kernel offers neither, create returns
 * nil, and idle_set/selected.rb takes its place. */
#include <errno.h>

#include "fibers/scheduler.h"
#include "os/platform.h"
#include "ruby/init.h"

#if HD_HAS_LINUX
#include <sys/epoll.h>
#elif HD_HAS_KQUEUE
#include <sys/event.h>
#include <sys/stat.h>
#include <sys/time.h>
#endif

enum { TAKEN_AT_ONCE = 256 };

/* -- the calls of the kernel. Each returns what the kernel does, with errno. --------------------------------------- */

#if HD_HAS_LINUX

static int open_set(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

static int forget(int set, int fd)
{
    return epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

static int find_ready(int set, int fds[TAKEN_AT_ONCE])
{
    struct epoll_event events[TAKEN_AT_ONCE];
    int count = epoll_wait(set, events, TAKEN_AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        fds[i] = events[i].data.fd;
        forget(set, fds[i]);
    }
    return count;
}

#elif HD_HAS_KQUEUE

static int open_set(void)
{
    return kqueue();
}

static int change(int set, int fd, unsigned short flags)
{
    struct kevent event;
    EV_SET(&event, (uintptr_t)fd, EVFILT_READ, flags, 0, 0, NULL);
    return kevent(set, &event, 1, NULL, 0, NULL);
}

/* A kqueue would watch a file until it grows. */
static int watch(int set, int fd)
{
    struct stat about;
    if (fstat(fd, &about) < 0) return -1;
    if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return change(set, fd, EV_ADD | EV_ONESHOT);
    errno = EPERM;
    return -1;
}

static int forget(int set, int fd)
{
    return change(set, fd, EV_DELETE);
}

static int find_ready(int set, int fds[TAKEN_AT_ONCE])
{
    struct kevent events[TAKEN_AT_ONCE];
    int count = kevent(set, NULL, 0, events, TAKEN_AT_ONCE, &(struct timespec){0, 0});
    for (int i = 0; i < count; i++) fds[i] = (int)events[i].ident;
    return count;
}

#else

static int refuse(void)
{
    errno = ENOSYS;
    return -1;
}

static int open_set(void)
{
    return refuse();
}

static int watch(int set, int fd)
{
    (void)set, (void)fd;
    return refuse();
}

static int forget(int set, int fd)
{
    (void)set, (void)fd;
    return refuse();
}

static int find_ready(int set, int fds[TAKEN_AT_ONCE])
{
    (void)set, (void)fds;
    return refuse();
}

#endif

/* -- the methods -------------------------------------------------------------------------------------------------- */

/* Creates a set and returns its descriptor, or nil if the kernel refuses that. */
static VALUE create(VALUE self)
{
    int fd = open_set();
    if (fd >= 0) return INT2FIX(fd);
    if (errno != ENOSYS && errno != EPERM && errno != EACCES) rb_sys_fail("a set of sockets");
    return Qnil;
}

static VALUE add(VALUE self, VALUE set, VALUE socket)
{
    int fd = rb_io_descriptor(socket);
    if (watch(rb_io_descriptor(set), fd) < 0) rb_sys_fail("a set of sockets");
    return INT2FIX(fd);
}

/* Makes the set readable: the bell, which can always be read, is in it until the next take. */
static VALUE ring(VALUE self, VALUE set, VALUE bell)
{
    if (watch(rb_io_descriptor(set), rb_io_descriptor(bell)) < 0 && errno != EEXIST) rb_sys_fail("a set of sockets");
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
    if (forget(rb_io_descriptor(set), FIX2INT(fd)) < 0 && errno != ENOENT && errno != EBADF)
        rb_sys_fail("a set of sockets");
    return Qnil;
}

/* Takes the sockets that have something to read out of the set. Returns their objects, which it removes from the hash
 * of objects by descriptors. */
static VALUE take(VALUE self, VALUE set, VALUE objects)
{
    int fds[TAKEN_AT_ONCE];
    int count = find_ready(rb_io_descriptor(set), fds);
    if (count < 0 && errno != EINTR) rb_sys_fail("a set of sockets");
    VALUE found = rb_ary_new();
    for (int i = 0; i < count; i++) {
        VALUE object = rb_hash_delete(objects, INT2FIX(fds[i]));
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
    rb_define_singleton_method(poller, "ring", ring, 2);
    rb_define_singleton_method(poller, "delete", delete, 2);
    rb_define_singleton_method(poller, "take", take, 2);
}
