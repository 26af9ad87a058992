/* See quick.h; and what is known of a file before it is opened. */
#include "quick.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "timeout.h"

/* Nearly always one fiber at most is in such a call: the scheduler knows it. Of any other, the fiber itself does, so
 * that one that is abandoned in the midst of it can be collected. */
static ID id_quick;

typedef struct {
    hd_scheduler *scheduler;
    VALUE fiber, before; /* before: what the fiber knew of it; Qundef: the scheduler knows it */
    unsigned generation; /* the reactor's: a fork in between voids the record */
} quick_call;

static VALUE no_longer_quick(VALUE pointer)
{
    quick_call *call = (void *)pointer;
    hd_scheduler_check_fork(call->scheduler);
    if (!RB_UNDEF_P(call->before))
        rb_ivar_set(call->fiber, id_quick, call->before);
    else if (call->generation == call->scheduler->reactor.generation)
        call->scheduler->quick = Qnil;
    return Qnil;
}

VALUE hd_quickly(hd_scheduler *scheduler, VALUE (*function)(VALUE), VALUE argument)
{
    quick_call call = {
        .scheduler = scheduler,
        .fiber = rb_fiber_current(),
        .before = Qundef,
        .generation = scheduler->reactor.generation,
    };
    if (NIL_P(scheduler->quick)) {
        scheduler->quick = call.fiber;
    }
    else {
        call.before = rb_attr_get(call.fiber, id_quick);
        rb_ivar_set(call.fiber, id_quick, Qtrue);
    }
    return rb_ensure(function, argument, no_longer_quick, (VALUE)&call);
}

bool hd_quick(const hd_scheduler *scheduler)
{
    if (NIL_P(scheduler->quick)) return false;
    VALUE fiber = rb_fiber_current();
    return scheduler->quick == fiber || RTEST(rb_attr_get(fiber, id_quick));
}

static VALUE quickly(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_timeouts_raise_overdue(scheduler);
    return hd_quickly(scheduler, rb_yield, Qundef);
}

static VALUE quick_p(VALUE self)
{
    return HD_BOOL(hd_quick(hd_scheduler_get(self)));
}

/* Looks a path up without waiting for a disk (RESOLVE_CACHED, Linux 5.12): a descriptor or -errno. */
static int look_up(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* Ruby 3.3 opens on this thread anyway: there a look that may take time makes nothing worse. */
static bool status_of(const char *path, struct stat *status)
{
    if (!HD_OPEN_IS_OFFLOADED) return stat(path, status) == 0;
    int fd = look_up(path);
    if (fd < 0) return false;
    bool known = fstat(fd, status) == 0;
    close(fd);
    return known;
}

/* The path of a Pathname or the like, or what was given; nil if that is no path. */
static VALUE path_of(VALUE object)
{
    VALUE path = rb_check_funcall(object, rb_intern("to_path"), 0, NULL);
    if (RB_UNDEF_P(path)) path = object;
    bool usable = RB_TYPE_P(path, T_STRING) && !memchr(RSTRING_PTR(path), 0, RSTRING_LEN(path));
    return usable ? path : Qnil;
}

/* What a path leads to, if the kernel knows that by heart: :file, :large_file, :fifo, or nil for everything else. */
static VALUE known_kind(VALUE self, VALUE path)
{
    hd_timeouts_raise_overdue(hd_scheduler_get(self));
    struct stat status;
    path = path_of(path);
    if (NIL_P(path) || !status_of(StringValueCStr(path), &status)) return Qnil;
    if (S_ISFIFO(status.st_mode)) return ID2SYM(rb_intern("fifo"));
    if (!S_ISREG(status.st_mode)) return Qnil;
    return ID2SYM(rb_intern(status.st_size > HD_LARGE_FILE ? "large_file" : "file"));
}

/* Does the kernel know by heart what the path leads to, or that it leads nowhere? */
static VALUE known_p(VALUE self, VALUE path)
{
    hd_timeouts_raise_overdue(hd_scheduler_get(self));
    path = path_of(path);
    if (NIL_P(path)) return Qtrue;
    int fd = look_up(StringValueCStr(path));
    if (fd >= 0) close(fd);
    return HD_BOOL(fd != -EAGAIN && fd != -ENOSYS && fd != -EINVAL && fd != -EPERM);
}

void hd_init_quick(void)
{
    id_quick = rb_intern("heddle_quick");
    rb_define_private_method(hd_cScheduler, "quickly", quickly, 0);
    rb_define_private_method(hd_cScheduler, "quick?", quick_p, 0);
    rb_define_private_method(hd_cScheduler, "known_kind", known_kind, 1);
    rb_define_private_method(hd_cScheduler, "known?", known_p, 1);
}
