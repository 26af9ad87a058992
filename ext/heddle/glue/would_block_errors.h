/* The cheap errors of read_nonblock and its kin. */
#ifndef HEDDLE_WOULD_BLOCK_ERRORS_H
#define HEDDLE_WOULD_BLOCK_ERRORS_H

#include "scheduler.h"

void hd_init_would_block_errors(void);

#endif
