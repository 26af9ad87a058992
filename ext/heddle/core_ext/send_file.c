/* One step of IO.copy_stream from a file, by sendfile(2), which moves the bytes without copying them. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/transfer.h"
#include "os/platform.h"
#include "ruby/init.h"

enum { STEP_MAX = 1 << 20 };

/* Can this byte of the file be read without waiting for a disk? */
static bool is_cached(int fd, off_t offset)
{
    char byte;
    return hd_read_now(fd, &byte, 1, offset) == 1;
}

static int source_of(VALUE io, bool *buffered)
{
    rb_io_t *fptr;
    RB_IO_POINTER(io, fptr);
    rb_io_check_byte_readable(fptr);
    *buffered = rb_io_read_pending(fptr);
    return rb_io_descriptor(io);
}

/* Returns the number of a descriptor that does not block, or -1. */
static int destination_of(VALUE io)
{
    if (rb_io_get_write_io(io) != io) return -1;
    int fd = rb_io_descriptor(io);
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && flags & O_NONBLOCK ? fd : -1;
}

/* Returns how many bytes can be sent at once; 0 if none can, or if nobody knows. */
static size_t step(int fd, off_t from, size_t most)
{
    struct stat status;
    if (from < 0 || fstat(fd, &status) < 0 || status.st_size <= from) return 0;
    size_t left = (size_t)(status.st_size - from);
    if (most > left) most = left;
    if (most > STEP_MAX) most = STEP_MAX;
    return most && is_cached(fd, from) && is_cached(fd, from + (off_t)most - 1) ? most : 0;
}

typedef struct {
    VALUE source, offset, most;
} file_part;

/* Looks at everything anew, because it may have changed during a wait. */
static ssize_t try_send_file(hd_transfer *call, void *pointer)
{
    const file_part *part = pointer;
    bool buffered;
    int from = source_of(part->source, &buffered), to = destination_of(call->io);
    if (to < 0 || (buffered && NIL_P(part->offset))) return HD_LEFT_TO_RUBY;
    off_t position = NIL_P(part->offset) ? lseek(from, 0, SEEK_CUR) : NUM2OFFT(part->offset);
    size_t size = step(from, position, NIL_P(part->most) ? STEP_MAX : NUM2SIZET(part->most));
    if (size == 0) return HD_LEFT_TO_RUBY;
    ssize_t sent;
    do {
        sent = hd_send_file(to, from, NIL_P(part->offset) ? NULL : &position, size);
    } while (sent == -EINTR);
    return sent == 0 || sent == -EINVAL || sent == -ENOSYS || sent == -EOPNOTSUPP ? HD_LEFT_TO_RUBY : sent;
}

/* Sends a part of the file.
 *
 * @param source [File]
 * @param destination [IO]
 * @param offset [Integer, nil] nil: from the position of the file, which moves
 * @param most [Integer, nil] bytes
 * @return [Integer, nil] bytes sent; nil: this part has to be read and written
 * @raise [IO::TimeoutError] when IO#timeout of the destination has passed */
static VALUE send_file(VALUE self, VALUE source, VALUE destination, VALUE offset, VALUE most)
{
    hd_transfer call = hd_transfer_of(hd_scheduler_get(self), HD_WRITE, destination, hd_kind_of(destination));
    ssize_t sent = hd_transfer_run(&call, false, try_send_file, &(file_part){source, offset, most});
    if (sent > 0) return SSIZET2NUM(sent);
    if (!hd_is_left_to_ruby(sent)) rb_syserr_fail((int)-sent, "sendfile");
    return Qnil;
}

void hd_init_send_file(void)
{
    rb_define_private_method(hd_cScheduler, "send_file", send_file, 4);
}
