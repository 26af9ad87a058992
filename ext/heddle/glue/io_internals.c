/* See io_internals.h. The struct is public up to Ruby 4.0, every member marked as deprecated. */
#include "io_internals.h"

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
}

#else

void hd_io_take_over(VALUE io) {}

bool hd_io_flushes(VALUE io, const void *bytes)
{
    return false;
}

void hd_io_flushed(VALUE io, size_t count) {}
#endif
