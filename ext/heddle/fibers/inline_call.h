/* Runs short blocking operations inline, on the thread of the loop. Ruby 3.4 and newer would hand them to a worker. */
#pragma once

#include "frame.h"

/* Calls the function. Operations that it passes to blocking_operation_wait meanwhile run inline. kind:
 * HD_FRAME_INLINE, or HD_FRAME_CLOSE for a close. HD_FRAME_WHOLE: they do not, but no time slice ends meanwhile. */
VALUE hd_call_inline(hd_scheduler *scheduler, hd_frame_kind kind, VALUE (*function)(VALUE), VALUE argument);
