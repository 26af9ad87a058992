/* The hook process_wait: Process.wait, system, backticks, IO.popen's close. */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fibers/park.h"
#include "os/process_fd.h"
#include "ruby/init.h"

VALUE rb_process_status_wait(rb_pid_t pid, int flags);

enum { FIRST_NAP_NS = 500 * 1000, LONGEST_NAP_NS = 20 * 1000 * 1000 };

static VALUE close_fd(VALUE fd)
{
    close((int)fd);
    return Qnil;
}

typedef struct {
    hd_scheduler *scheduler;
    VALUE pid;
    int fd;
} exit_wait;

static VALUE wait_readable(VALUE pointer)
{
    exit_wait *wait = (void *)pointer;
    hd_interest interest = {.fd = wait->fd, .events = POLLIN, .io = (hd_word)Qnil};
    hd_request request = {.kind = HD_WAIT_FOR_PROCESS, .subject = wait->pid, .deadline_ns = HD_NO_DEADLINE,
                          .interests = &interest, .interests_count = 1};
    return INT2FIX(hd_park_until_ready(wait->scheduler, &request));
}

/* Waits until the child has ended. Returns false where no descriptor can be had for it (before Linux 5.3, seccomp, too
 * many are open). */
static bool wait_for_exit(hd_scheduler *scheduler, rb_pid_t pid)
{
    int fd = hd_process_fd(pid);
    if (fd < 0) return fd == -ESRCH; /* reaped by somebody else: waitpid will report it */
    exit_wait wait = {scheduler, PIDT2NUM(pid), fd};
    return FIX2INT(rb_ensure(wait_readable, (VALUE)&wait, close_fd, (VALUE)fd)) >= 0;
}

/* Sleeps before the next look at any child, or any child of a process group. Such a wait has no descriptor to poll, and
 * the handler for SIGCHLD belongs to the program. The naps grow from 0.5 to 20 ms. */
static int64_t nap(hd_scheduler *scheduler, VALUE pid, int64_t nap_ns)
{
    hd_request request = {.kind = HD_WAIT_FOR_PROCESS, .subject = pid, .deadline_ns = hd_clock_now() + nap_ns};
    hd_park(scheduler, &request);
    return nap_ns * 2 > LONGEST_NAP_NS ? LONGEST_NAP_NS : nap_ns * 2;
}

/* Waits for a child process.
 *
 * @overload process_wait(pid, flags)
 *   @param pid [Integer] a child; -1, 0 and -group as in waitpid(2)
 *   @param flags [Integer] Process::WUNTRACED and so on
 *   @return [Process::Status]
 * @see https://man7.org/linux/man-pages/man2/pidfd_open.2.html */
static VALUE hook_process_wait(VALUE self, VALUE pid_value, VALUE flags_value)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    rb_pid_t pid = NUM2PIDT(pid_value);
    int flags = NUM2INT(flags_value);
    bool fd_serves = pid > 0 && !(flags & (WUNTRACED | WCONTINUED));
    int64_t nap_ns = FIRST_NAP_NS;
    scheduler->running.has_waited_for_child = true;
    for (;;) {
        VALUE status = rb_process_status_wait(pid, flags | WNOHANG);
        if (!NIL_P(status) || flags & WNOHANG) return status;
        if (fd_serves) fd_serves = wait_for_exit(scheduler, pid);
        if (!fd_serves) nap_ns = nap(scheduler, pid_value, nap_ns);
    }
}

void hd_init_hooks_process(void)
{
    rb_define_method(hd_cScheduler, "process_wait", hook_process_wait, 2);
}
