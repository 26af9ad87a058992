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

/* These bytes are where a read is to go to, after a wait. If that is the read buffer, and another fiber has filled it
 * meanwhile, what is in it still is moved to its beginning, as if it had been read now: so many bytes. Else 0. */
size_t hd_io_filled_meanwhile(VALUE io, const void *bytes);

/* What is in the write buffer now. Other fibers and threads append to it, and move its bytes, whenever this one waits:
 * it is asked for anew after every wait. */
void *hd_io_write_buffer(VALUE io, size_t *size);

/* So many bytes of the write buffer have been written. */
void hd_io_flushed(VALUE io, size_t count);

/* Is there anything in the write buffer? */
bool hd_io_has_to_flush(VALUE io);

/* The Mutex that whoever writes to the IO holds; it is there once something has been written. */
VALUE hd_io_write_lock(VALUE io);

/* Does the write buffer take so many bytes without being flushed? */
bool hd_io_has_room(VALUE io, size_t size);

/* Are strings written byte by byte as they are, whatever their encoding? */
bool hd_io_writes_bytes(VALUE io);

/* Is what `read` gives of it no plain copy of the bytes: of another encoding, or with other line ends? */
bool hd_io_converts(VALUE io);

/* The number of an open IO, or -1. (One that is hidden is not open.) */
int hd_io_descriptor(VALUE io);

/* FMODE_READABLE and so on of an open IO, also of one that is frozen: that can be closed. */
int hd_io_mode(VALUE io);

/* An IO that looks closed to all but its closer. */
typedef struct {
    VALUE io;
    void *insides; /* NULL: it is not hidden */
    int fd, mode;
} hd_hidden_io;

/* Hides an open IO. It does nothing where Ruby shows no insides. */
hd_hidden_io hd_io_hide(VALUE io);

/* As it was before, to be closed by Ruby. If it has been opened anew meanwhile, the old file is closed here. */
void hd_io_show(const hd_hidden_io *hidden);

#endif
