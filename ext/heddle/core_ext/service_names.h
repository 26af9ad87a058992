/* What service_names.c tells the others that take ports. */
#pragma once

#include <ruby.h>
#include <stdbool.h>

/* Is it a port that Ruby takes when a scheduler resolves, or none that the resolver could take? Otherwise the resolver
 * is to be asked: for "http", and for numbers that only it understands ("+80", 70000). */
bool hd_plain_port_p(VALUE port);
