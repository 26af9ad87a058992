/* Two tasks that read from one stream. Each of them waits for an answer, and one may get that of the other: Heddle
 * tells of it (lib/heddle/internal/shared_io.rb), for nobody else can. */
#pragma once

#include "fibers/scheduler.h"

/* Somebody waits for this descriptor: is it another task that waits to read from this IO? Then warns or raises. Returns
 * the IO's descriptor; raises if it was closed meanwhile, for others may have run. */
int hd_meet_reader(hd_scheduler *scheduler, VALUE io, int fd);

/* Before the current fiber reads from an IO, or waits for that. */
static inline int hd_before_read(hd_scheduler *scheduler, VALUE io, int fd)
{
    return RB_LIKELY(!hd_map_find(scheduler->reactor.ios, (hd_word)fd)) ? fd : hd_meet_reader(scheduler, io, fd);
}

/* The kernel may have read bytes for a fiber that has yet to run. They come before those that are read now, so it runs
 * first. The descriptor, as above. */
int hd_after_those_before(hd_scheduler *scheduler, VALUE io, int fd);
