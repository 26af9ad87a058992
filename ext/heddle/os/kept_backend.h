/* KEPT BACKENDS: a thread keeps its backend for its next scheduler.
 *
 * Problem: to make a ring takes far longer than everything else in a short run. Way: a native thread keeps one
 * backend. It is closed when it has been idle for HD_KEPT_SECONDS (by a thread that runs as long as any backend is
 * kept), when its thread ends, and in the child of a fork. It is closed at once when HD_KEPT_MAX others are kept, or
 * when the kernel still works for its last owner. Price: this is only for Ruby threads that stay with their native
 * threads, because a ring may be tied to its native thread. Sources: guides/design.md, "Backends". */
#pragma once

#include "core/backend.h"

enum { HD_KEPT_SECONDS = 5, HD_KEPT_MAX = 64 };

/* Takes the backend that this thread keeps; NULL if it keeps none of this kind. */
hd_backend *hd_kept_backend_take(const hd_backend_ops *ops);

/* Keeps the backend for this thread, or closes it. */
void hd_kept_backend_put(const hd_backend_ops *ops, hd_backend *backend);

/* Closes the backend that this thread keeps. Called when the Ruby thread ends. Without that call the backend is
 * closed when the native thread ends. */
void hd_kept_backend_close(void);
