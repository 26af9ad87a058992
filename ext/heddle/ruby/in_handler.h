/* Says whether a handler runs. */
#pragma once

#include "compat.h"

/* Does the handler of a signal run here, or a finalizer? Ruby calls both in the same way. */
bool hd_in_handler(void);
