/* Descriptors that can be read when a process has ended. */
#pragma once

#include <sys/types.h>

/* Returns the descriptor for a child, which the caller closes, or -errno. -ESRCH: no such child exists any longer.
 * -ENOSYS: the system has no such descriptors. */
int hd_process_fd(pid_t pid);
