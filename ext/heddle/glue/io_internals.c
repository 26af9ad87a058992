/* See io_internals.h. The struct is public up to Ruby 4.0, every member marked as deprecated. */
#include "io_internals.h"

#include <string.h>
#include <unistd.h>

#ifdef HAVE_RB_IO_T_WBUF
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void hd_io_take_over(VALUE io)
{
    if (RFILE(io)->fptr) RFILE(io)->fptr->self = io;
}

bool hd_io_flushes(VALUE io, const void *bytes)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    const char *start = fptr ? fptr->wbuf.ptr : NULL;
    return start && (const char *)bytes >= start && (const char *)bytes < start + fptr->wbuf.capa;
}

size_t hd_io_filled_meanwhile(VALUE io, const void *bytes)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || bytes != fptr->rbuf.ptr || fptr->rbuf.len <= 0) return 0;
    memmove(fptr->rbuf.ptr, fptr->rbuf.ptr + fptr->rbuf.off, (size_t)fptr->rbuf.len);
    fptr->rbuf.off = 0;
    return (size_t)fptr->rbuf.len;
}

void *hd_io_write_buffer(VALUE io, size_t *size)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    *size = (size_t)fptr->wbuf.len;
    return fptr->wbuf.ptr + fptr->wbuf.off;
}

void hd_io_flushed(VALUE io, size_t count)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    fptr->wbuf.off += (int)count;
    fptr->wbuf.len -= (int)count;
    if (fptr->wbuf.len == 0) fptr->wbuf.off = 0;
}

bool hd_io_has_to_flush(VALUE io)
{
    return RFILE(io)->fptr && RFILE(io)->fptr->wbuf.len > 0;
}

VALUE hd_io_write_lock(VALUE io)
{
    return RFILE(io)->fptr->write_lock;
}

bool hd_io_has_room(VALUE io, size_t size)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->mode & (FMODE_SYNC | FMODE_TTY)) return false;
    return fptr->wbuf.ptr && (size_t)fptr->wbuf.len + size < (size_t)fptr->wbuf.capa;
}

bool hd_io_writes_bytes(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return fptr && !fptr->encs.enc && !fptr->encs.enc2 && !fptr->encs.ecflags;
}

bool hd_io_converts(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return !fptr || fptr->encs.enc2 || fptr->encs.ecflags;
}

int hd_io_descriptor(VALUE io)
{
    return RFILE(io)->fptr ? RFILE(io)->fptr->fd : -1;
}

int hd_io_mode(VALUE io)
{
    return RFILE(io)->fptr->mode;
}

hd_hidden_io hd_io_hide(VALUE io)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0) return (hd_hidden_io){0};
    hd_hidden_io hidden = {.io = io, .insides = fptr, .fd = fptr->fd, .mode = fptr->mode};
    fptr->mode &= ~FMODE_READWRITE;
    fptr->fd = -1;
    return hidden;
}

void hd_io_show(const hd_hidden_io *hidden)
{
    if (!hidden->insides) return;
    rb_io_t *fptr = RFILE(hidden->io)->fptr;
    if (fptr == hidden->insides && fptr->fd < 0) {
        fptr->fd = hidden->fd;
        fptr->mode |= hidden->mode & FMODE_READWRITE;
    }
    else if (!(hidden->mode & FMODE_EXTERNAL)) {
        close(hidden->fd);
    }
}

#else

void hd_io_take_over(VALUE io) {}

bool hd_io_flushes(VALUE io, const void *bytes)
{
    return false;
}

size_t hd_io_filled_meanwhile(VALUE io, const void *bytes)
{
    return 0;
}

void *hd_io_write_buffer(VALUE io, size_t *size)
{
    *size = 0;
    return NULL;
}

void hd_io_flushed(VALUE io, size_t count) {}

bool hd_io_has_to_flush(VALUE io)
{
    return false;
}

VALUE hd_io_write_lock(VALUE io)
{
    return Qnil;
}

bool hd_io_has_room(VALUE io, size_t size)
{
    return false;
}

bool hd_io_writes_bytes(VALUE io)
{
    return false;
}

bool hd_io_converts(VALUE io)
{
    return true;
}

int hd_io_descriptor(VALUE io)
{
    if (!RFILE(io)->fptr || RTEST(rb_io_closed_p(io))) return -1;
    return rb_io_descriptor(io);
}

int hd_io_mode(VALUE io)
{
    return rb_io_mode(io);
}

hd_hidden_io hd_io_hide(VALUE io)
{
    return (hd_hidden_io){0};
}

void hd_io_show(const hd_hidden_io *hidden) {}
#endif
