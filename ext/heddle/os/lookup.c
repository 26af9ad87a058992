/* The jobs of lookup.h. */
#include "lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- the addresses of a name ---------------------------------------------------------------------------------- */

static bool make_room(hd_address_lookup *lookup, size_t count)
{
    lookup->addresses = count == 1 ? &lookup->only : calloc(count, sizeof(hd_address));
    if (!lookup->addresses) lookup->error = EAI_MEMORY;
    return lookup->addresses;
}

static void keep(hd_address_lookup *lookup, const struct addrinfo *list)
{
    size_t count = 0;
    for (const struct addrinfo *one = list; one; one = one->ai_next) count++;
    if (!make_room(lookup, count)) return;
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        hd_address *address = &lookup->addresses[lookup->count];
        if (one->ai_addrlen > sizeof(address->address)) continue;
        address->length = one->ai_addrlen;
        memcpy(address->address.bytes, one->ai_addr, one->ai_addrlen);
        lookup->count++;
    }
}

static void look_up_addresses(hd_job *job)
{
    hd_address_lookup *lookup = (hd_address_lookup *)job;
    /* One socket type, because otherwise every address would come back three times. */
    struct addrinfo hints = {.ai_family = lookup->family, .ai_socktype = SOCK_STREAM}, *list = NULL;
    lookup->error = getaddrinfo(lookup->host, lookup->service, &hints, &list);
    lookup->error_number = errno;
    /* Some resolvers report an unknown name so; Ruby reads it in this way, too. */
    if (lookup->error == EAI_SYSTEM && lookup->error_number == ENOENT) lookup->error = EAI_NONAME;
    if (!lookup->error) keep(lookup, list);
    if (list) freeaddrinfo(list);
}

static void free_address_lookup(hd_job *job)
{
    hd_address_lookup *lookup = (hd_address_lookup *)job;
    if (lookup->addresses != &lookup->only) free(lookup->addresses);
    free(lookup);
}

static bool equal(const char *text, const char *other)
{
    return text && other ? strcmp(text, other) == 0 : text == other;
}

static bool same_question(const hd_job *job, const hd_job *other)
{
    const hd_address_lookup *one = (const hd_address_lookup *)job, *two = (const hd_address_lookup *)other;
    return one->family == two->family && equal(one->host, two->host) && equal(one->service, two->service);
}

static void copy_addresses(hd_job *job, const hd_job *other)
{
    hd_address_lookup *lookup = (hd_address_lookup *)job;
    const hd_address_lookup *result = (const hd_address_lookup *)other;
    lookup->error = result->error;
    lookup->error_number = result->error_number;
    if (result->error || !make_room(lookup, result->count)) return;
    lookup->count = result->count;
    memcpy(lookup->addresses, result->addresses, result->count * sizeof(hd_address));
}

static const hd_job_type address_lookup = {look_up_addresses, free_address_lookup, same_question, copy_addresses};

static hd_pool pool_for(int family)
{
    if (family == AF_INET) return HD_POOL_IPV4_LOOKUPS;
    return family == AF_INET6 ? HD_POOL_IPV6_LOOKUPS : HD_POOL_LOOKUPS;
}

hd_address_lookup *hd_address_lookup_new(const char *host, const char *service, int family)
{
    size_t host_size = host ? strlen(host) + 1 : 0, service_size = service ? strlen(service) + 1 : 0;
    hd_address_lookup *lookup = calloc(1, sizeof(*lookup) + host_size + service_size);
    if (!lookup) return NULL;
    hd_job_init(&lookup->job, &address_lookup, pool_for(family));
    lookup->family = family;
    lookup->error = EAI_AGAIN;
    if (host) lookup->host = memcpy(lookup->texts, host, host_size);
    if (service) lookup->service = memcpy(lookup->texts + host_size, service, service_size);
    return lookup;
}

/* -- the names of an address ---------------------------------------------------------------------------------- */

static void look_up_names(hd_job *job)
{
    hd_name_lookup *lookup = (hd_name_lookup *)job;
    lookup->error = getnameinfo(&lookup->address.address.any, lookup->address.length, lookup->host,
                                sizeof(lookup->host), lookup->service, sizeof(lookup->service), lookup->flags);
    lookup->error_number = errno;
}

static void free_name_lookup(hd_job *job)
{
    free(job);
}

static bool same_address(const hd_job *job, const hd_job *other)
{
    const hd_name_lookup *one = (const hd_name_lookup *)job, *two = (const hd_name_lookup *)other;
    return one->flags == two->flags && one->address.length == two->address.length &&
           memcmp(one->address.address.bytes, two->address.address.bytes, one->address.length) == 0;
}

static void copy_names(hd_job *job, const hd_job *other)
{
    hd_name_lookup *lookup = (hd_name_lookup *)job;
    const hd_name_lookup *result = (const hd_name_lookup *)other;
    lookup->error = result->error;
    lookup->error_number = result->error_number;
    memcpy(lookup->host, result->host, sizeof(lookup->host));
    memcpy(lookup->service, result->service, sizeof(lookup->service));
}

static const hd_job_type name_lookup = {look_up_names, free_name_lookup, same_address, copy_names};

hd_name_lookup *hd_name_lookup_new(const hd_address *address, int flags)
{
    hd_name_lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup) return NULL;
    hd_job_init(&lookup->job, &name_lookup, HD_POOL_LOOKUPS);
    lookup->address = *address;
    lookup->error = EAI_AGAIN;
    lookup->flags = flags;
    return lookup;
}

bool hd_host_numeric(const char *host)
{
    char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}
