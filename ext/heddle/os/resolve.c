/* The getaddrinfo job of resolve.h. */
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

static void run(hd_job *job)
{
    hd_resolve_job *resolve = (hd_resolve_job *)job;
    /* One socket type, or every address would come back three times. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    resolve->error = getaddrinfo(resolve->host, NULL, &hints, &resolve->addresses);
}

static void release(hd_job *job)
{
    hd_resolve_job *resolve = (hd_resolve_job *)job;
    if (resolve->addresses) freeaddrinfo(resolve->addresses);
    free(resolve->host);
    free(resolve);
}

hd_resolve_job *hd_resolve_job_new(const char *host)
{
    hd_resolve_job *resolve = calloc(1, sizeof(*resolve));
    if (!resolve) return NULL;
    resolve->job.run = run;
    resolve->job.free = release;
    resolve->host = strdup(host);
    if (!resolve->host) {
        free(resolve);
        return NULL;
    }
    return resolve;
}
