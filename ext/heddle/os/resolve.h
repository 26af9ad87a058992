/* Name resolution by the system's own resolver (hosts file, nsswitch, mDNS) on a worker. */
#ifndef HEDDLE_RESOLVE_H
#define HEDDLE_RESOLVE_H

#include <netdb.h>

#include "worker.h"

typedef struct {
    hd_job job;
    char *host;
    int error; /* getaddrinfo's */
    struct addrinfo *addresses;
} hd_resolve_job;

/* A job for this name (copied), or NULL for want of memory. */
hd_resolve_job *hd_resolve_job_new(const char *host);

#endif
