/* Opening a File. */
#ifndef HEDDLE_FILE_OPEN_H
#define HEDDLE_FILE_OPEN_H

#include "scheduler.h"

void hd_init_file_open(void);

#endif
