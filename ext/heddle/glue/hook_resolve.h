/* What hook_resolve.c offers to tcp_connect.c. */
#ifndef HEDDLE_HOOK_RESOLVE_H
#define HEDDLE_HOOK_RESOLVE_H

#include <ruby.h>
#include <stdint.h>

/* Resolves a host (nil: this one) and waits for it until the deadline.
 * The numeric host and the port, as an Array, if that is known then and there is but the one; else the Heddle::Lookup,
 * for what is to be done with the rest. */
VALUE hd_find_address(VALUE scheduler, VALUE host, const char *service, int64_t deadline_ns);

#endif
