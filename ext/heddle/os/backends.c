/* The backends, best first. */
#include "backends.h"

#include <stdio.h>
#include <string.h>

const hd_backend_ops *const hd_backends[] = {
#if HD_HAS_LINUX
    &hd_backend_uring,
    &hd_backend_epoll,
#endif
#if HD_KQUEUE_BACKEND
    &hd_backend_kqueue,
#endif
    &hd_backend_poll,
    NULL,
};

const hd_backend_ops *hd_backend_named(const char *name)
{
    for (const hd_backend_ops *const *ops = hd_backends; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0) return *ops;
    return NULL;
}

const hd_backend_ops *hd_backend_after(const hd_backend_ops *ops)
{
    int index = 0;
    while (hd_backends[index] != ops) index++;
    return hd_backends[index + 1];
}

void hd_backend_names(char *names, int size)
{
    int length = 0;
    for (const hd_backend_ops *const *ops = hd_backends; *ops && length < size; ops++)
        length += snprintf(names + length, (size_t)(size - length), "%s%s", length ? ", " : "", (*ops)->name);
}

bool hd_backend_offered(const hd_backend_ops *ops, char *reason, int reason_size)
{
    static bool offered[sizeof(hd_backends) / sizeof(*hd_backends)];
    int index = 0;
    while (hd_backends[index] != ops) index++;
    if (__atomic_load_n(&offered[index], __ATOMIC_ACQUIRE)) return true;
    if (ops->probe(reason, reason_size) < 0) return false;
    __atomic_store_n(&offered[index], true, __ATOMIC_RELEASE);
    return true;
}
