/* Whether a handler runs. */
#pragma once

#include "compat.h"

/* Does the handler of a signal run here, or a finalizer, which Ruby calls in the same way? */
bool hd_in_handler(void);
