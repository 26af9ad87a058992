/* Calls whose blocking operations run inline, on the thread of the loop: they cannot take time. Ruby 3.4+ would hand
 * them to a worker. */
#pragma once

#include "frame.h"

/* Calls the function; what it offers to blocking_operation_wait meanwhile runs inline. kind: HD_FRAME_INLINE, or
 * HD_FRAME_CLOSE for a close. */
VALUE hd_call_inline(hd_scheduler *scheduler, hd_frame_kind kind, VALUE (*function)(VALUE), VALUE argument);
