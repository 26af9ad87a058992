/* Lists the backends, best first, and chooses among them. */
#pragma once

#include "core/backend.h"
#include "platform.h"

extern const hd_backend_ops hd_backend_uring, hd_backend_epoll, hd_backend_kqueue, hd_backend_poll;

/* Best first, ends with NULL. */
extern const hd_backend_ops *const hd_backends[];

/* Does this machine offer it? A trial costs as much as a ring, so a yes is remembered for the process. A later ring
 * may be refused all the same. If it is not offered, `reason` gets a text for people. */
bool hd_backend_offered(const hd_backend_ops *ops, char *reason, int reason_size);

/* The backend of that name, or NULL. */
const hd_backend_ops *hd_backend_named(const char *name);

/* The next best backend, or NULL after the last one. */
const hd_backend_ops *hd_backend_after(const hd_backend_ops *ops);

/* Stores the names of all backends, for people. */
void hd_backend_names(char *names, int size);
