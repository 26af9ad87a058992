/* Finds out whether the hosts file has the answer to a lookup. Then the system's resolver answers within
 * microseconds, and asks nobody else, so no worker is needed. */
#pragma once

#include <stdbool.h>

/* Will getaddrinfo have the answer for this host and family (AF_UNSPEC: any) from the hosts file? False, too, when
 * that is not certain. */
bool hd_hosts_file_answers(const char *host, int family);

/* Answers this from the text of nsswitch.conf and of the hosts file; NULL: there is no such file. */
bool hd_hosts_text_answers(const char *name_services, const char *hosts, const char *host, int family);
