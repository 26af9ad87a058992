/* IO#read_nonblock under a scheduler: what hook_io.c must know of it. */
#ifndef HEDDLE_WOULD_BLOCK_H
#define HEDDLE_WOULD_BLOCK_H

#include "scheduler.h"

/* Is the current fiber inside a *_nonblock method of this scheduler's thread? Then a hook must not wait. */
bool hd_would_block_active(const hd_scheduler *scheduler);

void hd_init_would_block(void);
void hd_init_would_block_errors(void);

#endif
