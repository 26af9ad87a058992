/* Who calls a hook: what hook_io.c must know of it; and the cheap errors of read_nonblock and its kin. */
#ifndef HEDDLE_WOULD_BLOCK_H
#define HEDDLE_WOULD_BLOCK_H

#include "scheduler.h"

/* Was the hook that asks called by a read_nonblock of Ruby's own? Then it must not wait. */
bool hd_would_block_wanted(void);

/* Was it called by IO#write? */
bool hd_called_by_io_write(void);

void hd_init_would_block_errors(void);

#endif
