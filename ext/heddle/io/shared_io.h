/* Two tasks that read from one stream. Each of them waits for an answer, and one may get the other's. Heddle reports it
 * (lib/heddle/internal/shared_io.rb), because nobody else can. */
#pragma once

#include "fibers/scheduler.h"

/* Checks whether another task waits to read from this IO, after some fiber was found that waits for its descriptor.
 * Then it warns or raises. Returns the IO's descriptor. Raises if it was closed meanwhile, because other fibers may
 * have run. */
int hd_meet_reader(hd_scheduler *scheduler, VALUE io, int fd);

/* Checks for another reader before the current fiber reads from an IO, or waits to read. */
static inline int hd_before_read(hd_scheduler *scheduler, VALUE io, int fd)
{
    return RB_LIKELY(!hd_map_find(scheduler->reactor.ios, (hd_word)fd)) ? fd : hd_meet_reader(scheduler, io, fd);
}

/* Lets a fiber run first for which the kernel has read bytes already. They come before the bytes that are read now.
 * Returns the descriptor, as hd_meet_reader does. */
int hd_after_those_before(hd_scheduler *scheduler, VALUE io, int fd);
