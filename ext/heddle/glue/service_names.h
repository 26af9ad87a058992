/* The methods that take the name of a service. */
#ifndef HEDDLE_SERVICE_NAMES_H
#define HEDDLE_SERVICE_NAMES_H

#include "scheduler.h"

void hd_init_service_names(void);

#endif
