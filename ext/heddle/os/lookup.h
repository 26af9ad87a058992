/* Lookups by the system's own resolver (hosts file, nsswitch, mDNS), as jobs for a worker: getaddrinfo finds the
 * addresses of a name, getnameinfo the names of an address. */
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "worker.h"

enum { HD_SERVICE_SIZE = 32 };

/* Room for an IPv4 or IPv6 address. */
typedef struct {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
        char bytes[sizeof(struct sockaddr_in6)];
    } address;
} hd_address;

typedef struct {
    hd_job job;
    const char *host, *service; /* NULL: not given */
    int family;
    int error; /* getaddrinfo's, or 0 */
    int error_number; /* errno, for EAI_SYSTEM */
    hd_address *addresses; /* in the resolver's order */
    size_t count;
    hd_address only; /* the address, if it is the only one, as it mostly is */
    char texts[];    /* the host and the service */
} hd_address_lookup;

/* Makes the job that looks this host and service (copied) up, for stream sockets of a family (AF_UNSPEC: any). NULL
 * for want of memory. */
hd_address_lookup *hd_address_lookup_new(const char *host, const char *service, int family);

typedef struct {
    hd_job job;
    hd_address address;
    int flags;
    int error, error_number; /* as in hd_address_lookup, of getnameinfo */
    char host[NI_MAXHOST], service[HD_SERVICE_SIZE];
} hd_name_lookup;

/* Makes the job that looks up the names of this address (copied) and its port. NULL for want of memory. */
hd_name_lookup *hd_name_lookup_new(const hd_address *address, int flags);

/* Is the host the text of an IP address, without a zone? Then no lookup is needed. */
bool hd_host_numeric(const char *host);
