/* Ruby's read buffer, and the fibers that wait to read from its IO. They may take the bytes that one fiber leaves
 * there. */
#pragma once

#include "scheduler.h"

/* Does the interest wait to read from this IO, or has it just been woken to read? */
bool hd_reads_from(const hd_interest *interest, VALUE io);

/* Wakes the fibers that wait for data of this IO. Called when Ruby's read buffer, which was empty, has been filled.
 * The bytes that the first reader leaves are theirs, and the kernel would not report these bytes again. */
void hd_wake_readers(hd_scheduler *scheduler, VALUE io, int fd);

static inline void hd_after_read_ahead(hd_scheduler *scheduler, VALUE io, int fd)
{
    if (RB_UNLIKELY(hd_map_find(scheduler->reactor.ios, (hd_word)fd) != NULL)) hd_wake_readers(scheduler, io, fd);
}

/* Puts bytes that were read for a fiber into Ruby's read buffer, because the fiber cannot go on with them. */
void hd_put_back(hd_scheduler *scheduler, const hd_interest *interest, const char *bytes);
