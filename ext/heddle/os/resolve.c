/* The getaddrinfo job of resolve.h. */
#include "resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(hd_resolve_job *resolve, size_t count)
{
    resolve->addresses = count == 1 ? &resolve->only : calloc(count, sizeof(hd_address));
    if (!resolve->addresses) resolve->error = EAI_MEMORY;
    return resolve->addresses;
}

static void keep(hd_resolve_job *resolve, const struct addrinfo *list)
{
    size_t count = 0;
    for (const struct addrinfo *one = list; one; one = one->ai_next) count++;
    if (!make_room(resolve, count)) return;
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        hd_address *address = &resolve->addresses[resolve->count];
        if (one->ai_addrlen > sizeof(address->address)) continue;
        address->length = one->ai_addrlen;
        memcpy(address->address.bytes, one->ai_addr, one->ai_addrlen);
        resolve->count++;
    }
}

static void look_up(hd_job *job)
{
    hd_resolve_job *resolve = (hd_resolve_job *)job;
    /* One socket type, or every address would come back three times. */
    struct addrinfo hints = {.ai_family = resolve->family, .ai_socktype = SOCK_STREAM}, *list = NULL;
    resolve->error = getaddrinfo(resolve->host, resolve->service, &hints, &list);
    resolve->error_number = errno;
    /* What some resolvers say of a name that they do not know; Ruby reads it so too. */
    if (resolve->error == EAI_SYSTEM && resolve->error_number == ENOENT) resolve->error = EAI_NONAME;
    if (!resolve->error) keep(resolve, list);
    if (list) freeaddrinfo(list);
}

static void release(hd_job *job)
{
    hd_resolve_job *resolve = (hd_resolve_job *)job;
    if (resolve->addresses != &resolve->only) free(resolve->addresses);
    free(resolve);
}

static bool equal(const char *text, const char *other)
{
    return text && other ? strcmp(text, other) == 0 : text == other;
}

static bool same(const hd_job *job, const hd_job *other)
{
    const hd_resolve_job *one = (const hd_resolve_job *)job, *two = (const hd_resolve_job *)other;
    return one->family == two->family && equal(one->host, two->host) && equal(one->service, two->service);
}

static void copy_result(hd_job *job, const hd_job *other)
{
    hd_resolve_job *mine = (hd_resolve_job *)job;
    const hd_resolve_job *result = (const hd_resolve_job *)other;
    mine->error = result->error;
    mine->error_number = result->error_number;
    if (result->error) return;
    if (!make_room(mine, result->count)) return;
    mine->count = result->count;
    memcpy(mine->addresses, result->addresses, result->count * sizeof(hd_address));
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *copy(char *to, const char *text, size_t size)
{
    return text ? memcpy(to, text, size) : NULL;
}

static hd_pool pool_for(int family)
{
    switch (family) {
    case AF_INET:
        return HD_POOL_IPV4_LOOKUPS;
    case AF_INET6:
        return HD_POOL_IPV6_LOOKUPS;
    default:
        return HD_POOL_LOOKUPS;
    }
}

static const hd_job_type address_lookup = {.run = look_up, .free = release, .same = same, .copy_result = copy_result};

hd_resolve_job *hd_resolve_job_new(const char *host, const char *service, int family)
{
    size_t host_size = size_of(host), service_size = size_of(service);
    hd_resolve_job *resolve = calloc(1, sizeof(*resolve) + host_size + service_size);
    if (!resolve) return NULL;
    hd_job_init(&resolve->job, &address_lookup, pool_for(family));
    resolve->family = family;
    resolve->host = copy(resolve->texts, host, host_size);
    resolve->service = copy(resolve->texts + host_size, service, service_size);
    return resolve;
}

bool hd_host_numeric(const char *host)
{
    char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}
