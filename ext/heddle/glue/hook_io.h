/* The hooks io_wait, io_read, io_write, io_pread and io_pwrite: what flush.c needs of them. */
#ifndef HEDDLE_HOOK_IO_H
#define HEDDLE_HOOK_IO_H

#include "scheduler.h"

/* Writes the whole buffer, for a fiber of this scheduler that holds the IO's write lock. 0 or -errno. */
int hd_flush_locked(hd_scheduler *scheduler, VALUE io);

#endif
