/* What hook_resolve.c offers to the others that resolve. */
#pragma once

#include <ruby.h>

#include "os/lookup.h"

/* Socket::ResolutionError, or the system's error, as Ruby's own socket library makes it: for a code of getaddrinfo or
 * getnameinfo. */
VALUE hd_resolution_error(int code, int error_number, const char *reason);

/* With the zone id of a link-local address; nil if it is no address. */
VALUE hd_numeric_host(const hd_address *address);

/* Resolves a host (nil: this one) and waits for it until the deadline.
 * The numeric host and the port, as an Array, if that is known then and there is but the one; else the Heddle::Lookup,
 * for what is to be done with the rest. */
VALUE hd_find_address(VALUE scheduler, VALUE host, const char *service, int64_t deadline_ns);
