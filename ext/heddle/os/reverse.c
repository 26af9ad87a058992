/* The getnameinfo job of reverse.h. */
#include "reverse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void look_up(hd_job *job)
{
    hd_reverse_job *reverse = (hd_reverse_job *)job;
    reverse->error = getnameinfo(&reverse->address.address.any, reverse->address.length, reverse->host,
                                 sizeof(reverse->host), reverse->service, sizeof(reverse->service), reverse->flags);
    reverse->error_number = errno;
}

static void release(hd_job *job)
{
    free(job);
}

static bool same(const hd_job *job, const hd_job *other)
{
    const hd_reverse_job *one = (const hd_reverse_job *)job, *two = (const hd_reverse_job *)other;
    return one->flags == two->flags && one->address.length == two->address.length &&
           memcmp(one->address.address.bytes, two->address.address.bytes, one->address.length) == 0;
}

static void copy_result(hd_job *job, const hd_job *other)
{
    hd_reverse_job *mine = (hd_reverse_job *)job;
    const hd_reverse_job *result = (const hd_reverse_job *)other;
    mine->error = result->error;
    mine->error_number = result->error_number;
    memcpy(mine->host, result->host, sizeof(mine->host));
    memcpy(mine->service, result->service, sizeof(mine->service));
}

static const hd_job_type name_lookup = {.run = look_up, .free = release, .same = same, .copy_result = copy_result};

hd_reverse_job *hd_reverse_job_new(const hd_address *address, int flags)
{
    hd_reverse_job *reverse = calloc(1, sizeof(*reverse));
    if (!reverse) return NULL;
    hd_job_init(&reverse->job, &name_lookup, HD_POOL_LOOKUPS);
    reverse->address = *address;
    reverse->flags = flags;
    return reverse;
}
