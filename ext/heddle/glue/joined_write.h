/* IO#write of several strings at once. */
#ifndef HEDDLE_JOINED_WRITE_H
#define HEDDLE_JOINED_WRITE_H

#include "scheduler.h"

void hd_init_joined_write(void);

#endif
