/* See cached_path.h. */
#include "cached_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"
#include "strike.h"

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

/* What a path leads to, if the kernel has that in memory: :file, :large_file, :fifo, or nil for everything else. */
static VALUE cached_kind(VALUE self, VALUE path)
{
    hd_strikes_raise_overdue(hd_scheduler_get(self));
    struct stat status;
    path = path_of(path);
    if (NIL_P(path) || !status_of(StringValueCStr(path), &status)) return Qnil;
    if (S_ISFIFO(status.st_mode)) return ID2SYM(rb_intern("fifo"));
    if (!S_ISREG(status.st_mode)) return Qnil;
    return ID2SYM(rb_intern(status.st_size > HD_LARGE_FILE ? "large_file" : "file"));
}

/* Has the kernel in memory what the path leads to, or that it leads nowhere? */
static VALUE cached_p(VALUE self, VALUE path)
{
    hd_strikes_raise_overdue(hd_scheduler_get(self));
    path = path_of(path);
    if (NIL_P(path)) return Qtrue;
    int fd = look_up(StringValueCStr(path));
    if (fd >= 0) close(fd);
    return HD_BOOL(fd != -EAGAIN && fd != -ENOSYS && fd != -EINVAL && fd != -EPERM);
}

void hd_init_cached_path(void)
{
    rb_define_private_method(hd_cScheduler, "cached_kind", cached_kind, 1);
    rb_define_private_method(hd_cScheduler, "cached?", cached_p, 1);
}
