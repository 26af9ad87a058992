/* The name of an address (getnameinfo) by the system's own resolver on a worker. */
#ifndef HEDDLE_REVERSE_H
#define HEDDLE_REVERSE_H

#include "resolve.h"

enum { HD_SERVICE_SIZE = 32 };

typedef struct {
    hd_job job;
    hd_address address;
    int flags;
    int error; /* getnameinfo's, or 0 */
    int error_number; /* errno, for EAI_SYSTEM */
    char host[NI_MAXHOST], service[HD_SERVICE_SIZE];
} hd_reverse_job;

/* A job that finds the names of this address (copied) and its port, or NULL for want of memory. */
hd_reverse_job *hd_reverse_job_new(const hd_address *address, int flags);

#endif
