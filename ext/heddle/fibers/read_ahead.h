/* Ruby's read buffer, and the fibers that wait to read from its IO: what one fiber leaves there is for them. */
#pragma once

#include "scheduler.h"

/* Does it wait to read from this IO, or has it just been told that it can? */
bool hd_reads_from(const hd_interest *interest, VALUE io);

/* Ruby's read buffer, which was empty, has been filled. Those that wait for data of this IO look there: what the first
 * leaves is theirs, and the kernel has nothing to tell them. */
void hd_wake_readers(hd_scheduler *scheduler, VALUE io, int fd);

static inline void hd_after_read_ahead(hd_scheduler *scheduler, VALUE io, int fd)
{
    if (RB_UNLIKELY(hd_map_find(scheduler->reactor.ios, (hd_word)fd) != NULL)) hd_wake_readers(scheduler, io, fd);
}

/* Puts what was read for a fiber that cannot go on with it into Ruby's read buffer. */
void hd_put_back(hd_scheduler *scheduler, const hd_interest *interest, const char *bytes);
