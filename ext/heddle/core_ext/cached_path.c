/* Looks at paths and files that the kernel has in memory. See cached_path.h for the interface.
 *
 * The problem: Ruby 3.3 looks up and opens a file without asking the scheduler, and the whole thread may wait for the
 * disk. Ruby 3.4 and newer hand each call to a worker, even if the kernel has the answer in memory. For an open, this
 * costs three times what reading a small file does.
 *
 * The way: openat2 with RESOLVE_CACHED opens a path only if that needs no disk, and a read without waiting takes the
 * content only if it is in the page cache. If either fails, the methods that use this file call Ruby's own, where
 * needed by way of a thread of the pool.
 *
 * The price: a look that finds nothing is one more system call.
 *
 * Sources: openat2(2); guides/patches.md (file_lookup, file_open, whole_file). */
#include "cached_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ruby/encoding.h>

#include "fibers/turn.h"
#include "io/transfer.h"
#include "os/platform.h"
#include "ruby/init.h"

/* Gets the status of a path without waiting for a disk. Ruby 3.3 opens files on this thread anyway, so a look that may
 * take time makes nothing worse there. */
static bool status_of(const char *path, struct stat *status)
{
    if (!HD_OPEN_IS_OFFLOADED) return stat(path, status) == 0;
    int fd = hd_look_up_cached(path);
    if (fd < 0) return false;
    bool known = fstat(fd, status) == 0;
    close(fd);
    return known;
}

/* Returns the path of a Pathname or the like, or the String that was given; nil if that is not a path. */
static VALUE path_of(VALUE object)
{
    VALUE path = rb_check_funcall(object, rb_intern("to_path"), 0, NULL);
    if (RB_UNDEF_P(path)) path = object;
    bool usable = RB_TYPE_P(path, T_STRING) && !memchr(RSTRING_PTR(path), 0, RSTRING_LEN(path));
    return usable ? path : Qnil;
}

/* Returns the kind of the file that a path leads to, if the kernel has that in memory: :file, :large_file, :fifo, or
 * nil for everything else. */
static VALUE cached_kind(VALUE self, VALUE path)
{
    hd_turn_spend(hd_scheduler_get(self), Qnil, HD_TURN_ENDS);
    struct stat status;
    path = path_of(path);
    if (NIL_P(path) || !status_of(StringValueCStr(path), &status)) return Qnil;
    if (S_ISFIFO(status.st_mode)) return ID2SYM(rb_intern("fifo"));
    if (!S_ISREG(status.st_mode)) return Qnil;
    return ID2SYM(rb_intern(status.st_size > HD_LARGE_FILE ? "large_file" : "file"));
}

/* Does the kernel know from memory where the path leads, or that it leads nowhere? */
static VALUE cached_p(VALUE self, VALUE path)
{
    hd_turn_spend(hd_scheduler_get(self), Qnil, HD_TURN_ENDS);
    path = path_of(path);
    if (NIL_P(path)) return Qtrue;
    int fd = hd_look_up_cached(StringValueCStr(path));
    if (fd >= 0) close(fd);
    return HD_BOOL(fd != -EAGAIN && fd != -ENOSYS && fd != -EINVAL && fd != -EPERM);
}

/* Can the path be opened as it is? A path that begins with "|" is a command to IO.read of Ruby 3.3. A path in another
 * encoding is converted by Ruby. */
static bool is_plain_path(VALUE path)
{
    return RB_TYPE_P(path, T_STRING) && RSTRING_LEN(path) > 0 && RSTRING_PTR(path)[0] != '|' &&
           rb_enc_asciicompat(rb_enc_get(path)) && !memchr(RSTRING_PTR(path), 0, RSTRING_LEN(path));
}

VALUE hd_cached_content(hd_scheduler *scheduler, VALUE path)
{
    hd_turn_spend(scheduler, Qnil, HD_TURN_ENDS);
    struct stat status;
    if (!is_plain_path(path) || !status_of(StringValueCStr(path), &status)) return Qnil;
    /* A FIFO must not be opened for a look, because its other end would go on. The size of files in /proc is 0. */
    if (!S_ISREG(status.st_mode) || status.st_size == 0 || status.st_size > HD_LARGE_FILE) return Qnil;
    VALUE content = rb_str_new(NULL, (long)status.st_size);
    int fd = hd_open_cached(RSTRING_PTR(path));
    if (fd < 0) return Qnil;
    hd_file_kind kind = HD_MAYBE_FILE;
    /* If the file has more bytes, the byte that ends the String is overwritten. */
    ssize_t got = hd_rw_try(HD_READ, fd, RSTRING_PTR(content), (size_t)status.st_size + 1, HD_NO_OFFSET, &kind);
    close(fd);
    RB_GC_GUARD(path);
    return got == status.st_size ? content : Qnil;
}

void hd_init_cached_path(void)
{
    rb_define_private_method(hd_cScheduler, "cached_kind", cached_kind, 1);
    rb_define_private_method(hd_cScheduler, "cached?", cached_p, 1);
}
