/* Names of hosts: the system's resolver on worker threads, or inline for what the hosts file knows. Heddle::Lookup is
 * for those who wait for more than one thing. */
#pragma once

#include "fibers/scheduler.h"
#include "os/lookup.h"

/* The numeric addresses of a host as an Array, in the resolver's order; nil if the name is unknown. Raises
 * Socket::ResolutionError if that cannot be said now. */
VALUE hd_addresses_of(hd_scheduler *scheduler, VALUE host);

/* Socket::ResolutionError, or the system's error, as Ruby's own socket library makes it: for a code of getaddrinfo or
 * getnameinfo. */
VALUE hd_resolution_error(int code, int error_number, const char *reason);

/* With the zone id of a link-local address; nil if it is no address. */
VALUE hd_numeric_host(const hd_address *address);

/* Resolves a host (nil: this one) and waits for it until the deadline.
 * The numeric host and the port, as an Array, if that is known then and there is but the one; else the Heddle::Lookup,
 * for what is to be done with the rest. */
VALUE hd_find_address(VALUE scheduler, VALUE host, const char *service, int64_t deadline_ns);
