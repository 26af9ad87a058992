/* What the kernel of this machine has, and lets this process use. */
#pragma once

#include <stdbool.h>

/* See heddle doctor (lib/heddle/cli/doctor/facts.rb). The kernel is asked each time. */
bool hd_kernel_has_process_fds(void);
bool hd_kernel_has_fine_timers(void);   /* epoll_pwait2 */
bool hd_kernel_has_deferred_work(void); /* IORING_SETUP_DEFER_TASKRUN */
