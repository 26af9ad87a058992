/* The backend that a thread keeps for its next scheduler: to make a ring takes far longer than all else in a short run.
 *
 * A native thread keeps one. It is closed when it has been idle for HD_KEPT_SECONDS (by a thread that lives as long as
 * any is kept), when its thread ends, and in the child of a fork; at once when HD_KEPT_MAX others are kept, or the
 * kernel still works for the last owner. Only for threads of Ruby's that stay with their native threads. */
#pragma once

#include "core/backend.h"

enum { HD_KEPT_SECONDS = 5, HD_KEPT_MAX = 64 };

/* The backend that this thread keeps; NULL if it keeps none of that kind. */
hd_backend *hd_kept_backend_take(const hd_backend_ops *ops);

/* Keeps it for this thread, or closes it. */
void hd_kept_backend_put(const hd_backend_ops *ops, hd_backend *backend);

/* Closes what this thread keeps. Called when it ends, and by itself if that is forgotten. */
void hd_kept_backend_close(void);
