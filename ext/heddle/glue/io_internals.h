/* What lies inside Ruby's IO objects and has no function. */
#ifndef HEDDLE_IO_INTERNALS_H
#define HEDDLE_IO_INTERNALS_H

#include "compat.h"

/* After close_read of an IO with a second one for writing (IO.popen "r+"): Ruby gives the first the insides of the
 * second, but they still name the second, which is closed, and the hooks are called with that. */
void hd_io_take_over(VALUE io);

/* Do these bytes lie in the write buffer of the IO? Ruby 4.0 flushes it by one io_write, and what that leaves over is
 * lost when the IO is closed. */
bool hd_io_flushes(VALUE io, const void *bytes);

/* So many bytes of the write buffer have been written. */
void hd_io_flushed(VALUE io, size_t count);

/* Is there anything in the write buffer? */
bool hd_io_has_to_flush(VALUE io);

/* Is what `read` gives of it no plain copy of the bytes: of another encoding, or with other line ends? */
bool hd_io_converts(VALUE io);

/* An IO that looks closed, or closed for one direction, to all but its closer. */
typedef struct {
    VALUE io;
    void *insides; /* NULL: it is not hidden */
    int fd, mode;
} hd_hidden_io;

/* Hides an open IO for these directions (POLLIN, POLLOUT). It does nothing where Ruby shows no insides. */
hd_hidden_io hd_io_hide(VALUE io, short events);

/* As it was before, to be closed by Ruby. If it has been opened anew meanwhile, the old file is closed here. */
void hd_io_show(const hd_hidden_io *hidden);

#endif
