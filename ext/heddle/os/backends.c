/* The candidates, best first. */
#include "backends.h"

#include <string.h>

const hd_backend_ops *const hd_backends[] = {&hd_backend_uring, &hd_backend_epoll, NULL};

const hd_backend_ops *hd_backend_named(const char *name)
{
    for (const hd_backend_ops *const *ops = hd_backends; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0) return *ops;
    return NULL;
}
