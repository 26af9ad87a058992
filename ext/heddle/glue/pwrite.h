/* IO#pwrite. */
#ifndef HEDDLE_PWRITE_H
#define HEDDLE_PWRITE_H

#include "scheduler.h"

void hd_init_pwrite(void);

#endif
