/* Name resolution by the system's own resolver (hosts file, nsswitch, mDNS) on a worker. */
#ifndef HEDDLE_RESOLVE_H
#define HEDDLE_RESOLVE_H

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "worker.h"

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
    hd_address only; /* where they are if there is but the one, as most often */
    char texts[];    /* of the host and the service */
} hd_resolve_job;

/* A job that resolves this name and service (copied) for stream sockets of a family (AF_UNSPEC: any), or NULL for want
 * of memory. */
hd_resolve_job *hd_resolve_job_new(const char *host, const char *service, int family);

/* Is the host the text of an IP address, without a zone? Nothing has to be resolved then. */
bool hd_host_numeric(const char *host);

#endif
