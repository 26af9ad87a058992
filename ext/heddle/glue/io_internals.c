/* See io_internals.h. The struct is public up to Ruby 4.0, every member marked as deprecated. */
#include "io_internals.h"

#include <poll.h>
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

bool hd_io_converts(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return !fptr || fptr->encs.enc2 || fptr->encs.ecflags;
}

hd_hidden_io hd_io_hide(VALUE io, short events)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0) return (hd_hidden_io){0};
    int both = FMODE_READABLE | FMODE_WRITABLE;
    int mode = (events & POLLIN ? FMODE_READABLE : 0) | (events & POLLOUT ? FMODE_WRITABLE : 0);
    hd_hidden_io hidden = {.io = io, .insides = fptr, .fd = fptr->fd, .mode = fptr->mode & mode};
    fptr->mode &= ~mode;
    if (!(fptr->mode & both)) fptr->fd = -1;
    return hidden;
}

void hd_io_show(const hd_hidden_io *hidden)
{
    if (!hidden->insides) return;
    rb_io_t *fptr = RFILE(hidden->io)->fptr;
    if (fptr == hidden->insides && (fptr->fd < 0 || fptr->fd == hidden->fd)) {
        fptr->fd = hidden->fd;
        fptr->mode |= hidden->mode;
    }
    else {
        close(hidden->fd);
    }
}

#else

void hd_io_take_over(VALUE io) {}

bool hd_io_flushes(VALUE io, const void *bytes)
{
    return false;
}

void hd_io_flushed(VALUE io, size_t count) {}

bool hd_io_has_to_flush(VALUE io)
{
    return false;
}

bool hd_io_converts(VALUE io)
{
    return true;
}

hd_hidden_io hd_io_hide(VALUE io, short events)
{
    return (hd_hidden_io){0};
}

void hd_io_show(const hd_hidden_io *hidden) {}
#endif
