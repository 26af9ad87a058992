/* What the hosts file knows, the system's resolver answers from there within microseconds, and asks nobody else. */
#pragma once

#include <stdbool.h>

/* Will getaddrinfo have the answer for this host and family (AF_UNSPEC: any) from the hosts file? False too when that
 * cannot be told for sure. */
bool hd_hosts_file_answers(const char *host, int family);

/* The same for the text of nsswitch.conf and of the hosts file; NULL: there is none. */
bool hd_hosts_text_answers(const char *name_services, const char *hosts, const char *host, int family);
