/* Fault injection, in the build of HEDDLE_VARIANT=faults alone: the linker leads the extension's own calls of these
 * functions through here (ld --wrap; extconf.rb takes the names from this file). Ruby's calls are not touched.
 *
 *   Heddle::Faults.set(call, errno, percent, limit, delay_us)
 *     errno     fails with it, without doing anything; 0: does not fail
 *     percent   the part of the calls that fail or are changed
 *     limit     the most bytes of a transfer, the entries of io_uring_setup; 0: no limit
 *     delay_us  sleeps before the call
 *   Heddle::Faults.clear; Heddle::Faults.hits(call) -> how often */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <ruby.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct {
    const char *name;
    int error;
    unsigned percent, delay_us;
    size_t limit;
    unsigned long calls, hits;
} fault;

enum { FAULTS_MAX = 32 };

static fault faults[FAULTS_MAX];

/* The fault of that name; a new one if there is room. */
static fault *fault_named(const char *name)
{
    for (int i = 0; i < FAULTS_MAX; i++) {
        if (!faults[i].name) faults[i].name = strdup(name);
        if (strcmp(faults[i].name, name) == 0) return &faults[i];
    }
    return NULL;
}

/* The fault, if this call gets one. Reads only: worker threads come here, too. */
static fault *fault_for(const char *name)
{
    for (int i = 0; i < FAULTS_MAX && faults[i].name; i++) {
        fault *one = &faults[i];
        if (strcmp(one->name, name) != 0 || !one->percent) continue;
        uint64_t mix = (__atomic_add_fetch(&one->calls, 1, __ATOMIC_RELAXED)) * UINT64_C(0x9E3779B97F4A7C15);
        if ((mix >> 33) % 100 >= one->percent) return NULL;
        __atomic_add_fetch(&one->hits, 1, __ATOMIC_RELAXED);
        if (one->delay_us) usleep(one->delay_us);
        return one;
    }
    return NULL;
}

#define FAILS(one) ((one) && (one)->error && ((errno = (one)->error)))

#define WRAP(type, name, parameters, failure, arguments)                                                           \
    type __real_##name parameters;                                                                                 \
    type __wrap_##name parameters;                                                                                 \
    type __wrap_##name parameters                                                                                  \
    {                                                                                                              \
        fault *one = fault_for(#name);                                                                                \
        if (FAILS(one)) return failure;                                                                            \
        return __real_##name arguments;                                                                            \
    }

#define WRAP_SIZED(type, name, parameters, size, arguments)                                                        \
    type __real_##name parameters;                                                                                 \
    type __wrap_##name parameters;                                                                                 \
    type __wrap_##name parameters                                                                                  \
    {                                                                                                              \
        fault *one = fault_for(#name);                                                                                \
        if (FAILS(one)) return -1;                                                                                 \
        if (one && one->limit && (size) > one->limit) (size) = one->limit;                                         \
        return __real_##name arguments;                                                                            \
    }

WRAP(void *, malloc, (size_t size), NULL, (size))
WRAP(void *, calloc, (size_t count, size_t size), NULL, (count, size))
WRAP(void *, realloc, (void *memory, size_t size), NULL, (memory, size))
WRAP(void *, ruby_xmalloc2, (size_t count, size_t size), (rb_memerror(), NULL), (count, size))
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset), MAP_FAILED,
     (at, size, protection, flags, fd, offset))
WRAP(int, epoll_create1, (int flags), -1, (flags))
WRAP(int, epoll_ctl, (int fd, int what, int other, struct epoll_event *event), -1, (fd, what, other, event))
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int count, int ms), -1, (fd, events, count, ms))
WRAP(int, eventfd, (unsigned count, int flags), -1, (count, flags))
WRAP(int, poll, (struct pollfd *fds, nfds_t count, int ms), -1, (fds, count, ms))
WRAP(int, getaddrinfo,
     (const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found), one->error,
     (host, service, hints, found))
WRAP(int, pthread_create,
     (pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument), one->error,
     (thread, attributes, start, argument))
WRAP_SIZED(ssize_t, read, (int fd, void *bytes, size_t size), size, (fd, bytes, size))
WRAP_SIZED(ssize_t, write, (int fd, const void *bytes, size_t size), size, (fd, bytes, size))
WRAP_SIZED(ssize_t, pread, (int fd, void *bytes, size_t size, off_t at), size, (fd, bytes, size, at))
WRAP_SIZED(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), size, (fd, bytes, size, at))
WRAP_SIZED(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), size, (fd, bytes, size, flags))
WRAP_SIZED(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), size, (fd, bytes, size, flags))

#define WRAP_VECTOR(type, name, vectors)                                                                           \
    type __real_##name(int fd, const struct iovec *vectors, int count, off_t at, int flags);                       \
    type __wrap_##name(int fd, const struct iovec *vectors, int count, off_t at, int flags);                       \
    type __wrap_##name(int fd, const struct iovec *vectors, int count, off_t at, int flags)                        \
    {                                                                                                              \
        struct iovec first = *vectors;                                                                             \
        fault *one = fault_for(#name);                                                                                \
        if (FAILS(one)) return -1;                                                                                 \
        if (one && one->limit && first.iov_len > one->limit) first.iov_len = one->limit;                           \
        return __real_##name(fd, &first, count, at, flags);                                                        \
    }

WRAP_VECTOR(ssize_t, preadv2, vectors)
WRAP_VECTOR(ssize_t, pwritev2, vectors)

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    long argument = va_arg(list, long);
    va_end(list);
    fault *one = fault_for("fcntl");
    if (FAILS(one)) return -1;
    return __real_fcntl(fd, what, argument);
}

static const char *name_of(long number)
{
    switch (number) {
    case SYS_io_uring_setup: return "io_uring_setup";
    case SYS_io_uring_enter: return "io_uring_enter";
    case SYS_epoll_pwait2: return "epoll_pwait2";
    case SYS_pidfd_open: return "pidfd_open";
    default: return "syscall";
    }
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list list;
    long values[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) values[i] = va_arg(list, long);
    va_end(list);
    fault *one = fault_for(name_of(number));
    if (FAILS(one)) return -1;
    if (one && one->limit && number == SYS_io_uring_setup) values[0] = (long)one->limit;
    return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

/* -- for Ruby ------------------------------------------------------------------------------------------------ */

static VALUE faults_set(VALUE self, VALUE name, VALUE error, VALUE percent, VALUE limit, VALUE delay_us)
{
    fault *one = fault_named(StringValueCStr(name));
    if (!one) rb_raise(rb_eArgError, "too many faults");
    one->error = NUM2INT(error);
    one->limit = NUM2SIZET(limit);
    one->delay_us = NUM2UINT(delay_us);
    one->calls = one->hits = 0;
    one->percent = NUM2UINT(percent);
    return Qnil;
}

static VALUE faults_clear(VALUE self)
{
    for (int i = 0; i < FAULTS_MAX; i++) faults[i].percent = 0;
    return Qnil;
}

static VALUE faults_hits(VALUE self, VALUE name)
{
    fault *one = fault_named(StringValueCStr(name));
    return one ? ULONG2NUM(one->hits) : Qnil;
}

/* When Ruby loads the extension. */
__attribute__((constructor)) static void define_module(void)
{
    VALUE module = rb_define_module_under(rb_define_module("Heddle"), "Faults");
    rb_define_singleton_method(module, "set", faults_set, 5);
    rb_define_singleton_method(module, "clear", faults_clear, 0);
    rb_define_singleton_method(module, "hits", faults_hits, 1);
}
