/* Names of hosts: the system's resolver on worker threads. A fiber that waits for more than one thing uses
 * Heddle::Lookup. */
#pragma once

#include "fibers/scheduler.h"
#include "os/lookup.h"

/* Returns the numeric addresses of a host as an Array, in the resolver's order, or nil if the name is unknown. Raises
 * Socket::ResolutionError if the resolver cannot answer now. */
VALUE hd_addresses_of(hd_scheduler *scheduler, VALUE host);

/* Makes the error for a code of getaddrinfo or getnameinfo: Socket::ResolutionError, or the system's error, as Ruby's
 * own socket library makes it. */
VALUE hd_resolution_error(int code, int error_number, const char *reason);

/* Returns the numeric host, with the zone id of a link-local address; nil if it is not an address. */
VALUE hd_numeric_host(const hd_address *address);

/* Resolves a host (nil: this one) and waits for it until the deadline. Returns the numeric host and the port as an
 * Array, if the name is resolved by then and has exactly one address. Else it returns the Heddle::Lookup, from which
 * the caller gets the addresses. */
VALUE hd_find_address(VALUE scheduler, VALUE host, const char *service, int64_t deadline_ns);
