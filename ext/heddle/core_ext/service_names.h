/* A check of ports, for the other files that take them. */
#pragma once

#include <ruby.h>
#include <stdbool.h>

/* Does Ruby take this port as it is when a scheduler resolves the host, or would the resolver refuse it, too? Otherwise
 * the resolver must be asked: for "http", and for numbers that only it understands ("+80", 70000). */
bool hd_plain_port_p(VALUE port);
