/* Which backends there are, best first, and the choice among them. */
#ifndef HEDDLE_BACKENDS_H
#define HEDDLE_BACKENDS_H

#include "../core/backend.h"

extern const hd_backend_ops hd_backend_uring, hd_backend_epoll;

/* Best first, ends with NULL. */
extern const hd_backend_ops *const hd_backends[];

/* The backend of that name, or NULL. */
const hd_backend_ops *hd_backend_named(const char *name);

#endif
