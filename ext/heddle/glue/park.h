/* The only fiber switches of the library.
 *
 * There is no loop fiber in the hot path. A fiber that parks picks the next ready fiber and transfers to it
 * itself. When none is ready, control goes to the home fiber (the one that called run, so that interrupts
 * surface there), or, when home is not in its loop, the parking fiber turns the loop on its own stack.
 *
 * A fiber may resume others (an Enumerator, a plain Fiber), and one of those may park: then the one that the loop
 * had switched to, the root of the chain, is suspended too, and its timeouts and its cancellation strike where the
 * chain waits.
 *
 * Coming back without a wake is normal: CRuby returns a finished fiber to the end of the root fiber's resume
 * chain, which is some fiber that is parked here. It means: you are the loop now. */
#ifndef HEDDLE_PARK_H
#define HEDDLE_PARK_H

#include "interrupt_mask.h"
#include "scheduler.h"

/* The deadline for a timeout given by Ruby: nil = none; else seconds as Kernel#sleep takes them (a negative one
 * is an ArgumentError, a non-number a TypeError). */
int64_t hd_deadline_from(VALUE timeout);

/* The same as Queue#pop(timeout:), Thread#join and Timeout take it: one that is negative is over at once, and none is
 * too large. */
int64_t hd_deadline_of_limit(VALUE limit);

/* Parks the current fiber on an IO-less wait until it is woken; *subject* is what it waits on, for reports.
 * Raises what it was woken with. */
hd_wake hd_park(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject, int64_t deadline_ns);

/* Parks on a descriptor. The events that are ready; 0: timed out; -EPERM: cannot be polled; other -errno.
 * at_once (may be NULL): it was ready when the kernel was first asked. */
int hd_park_io(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns, bool *at_once);

/* Parks on `count` descriptors; interests[i].fd, .events and .io (the object) are given, .revents is
 * the answer. 1: something is ready; 0: timed out; or -errno. */
int hd_park_ios(hd_scheduler *scheduler, hd_interest *interests, size_t count, int64_t deadline_ns);

/* Parks until the process of this pidfd has ended. As hd_park_ios. */
int hd_park_process(hd_scheduler *scheduler, VALUE pid, int pidfd);

/* Runs a job on a worker while this fiber is parked; here, if there is no worker to be had. The caller releases the
 * job. */
void hd_park_worker(hd_scheduler *scheduler, hd_job *job, VALUE subject);

/* Runs a job on this thread, without the GVL, for want of a worker. */
void hd_run_job_here(hd_job *job);

/* Parks until one of the jobs (submitted before) has run or one of the descriptors is ready, for a connection to
 * *host*. As hd_park_ios. */
int hd_park_connecting(hd_scheduler *scheduler, VALUE host, hd_interest *interests, size_t count, hd_job **jobs,
                       size_t jobs_count, int64_t deadline_ns);

/* Lets every other ready fiber run first. */
void hd_park_turn(hd_scheduler *scheduler);

/* Runs switch_away(argument) with the current fiber in the ready queue: in front, so that it goes on as soon as
 * whoever runs instead parks or ends, or at the back. */
VALUE hd_park_ready(hd_scheduler *scheduler, bool front, VALUE (*switch_away)(VALUE), VALUE argument);

/* Switches to a fiber; nothing is queued. */
void hd_transfer_to(VALUE fiber);

/* What the fiber of the loop does, again and again: gives control to a fiber that is ready, or waits for one. */
void hd_loop_step(hd_scheduler *scheduler);

/* Turns the loop on this fiber, the home, until no fiber is parked or ready. Raises interrupts and fatal
 * exceptions of fibers; may be called again after that. */
void hd_run_until_idle(hd_scheduler *scheduler);

/* The same, where no signal handler can come. */
void hd_run_here(hd_scheduler *scheduler);

/* The wait of a fiber, or NULL. */
hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber);

/* The wait of a fiber, or of the one that it has resumed, directly or not; or NULL. */
hd_wait *hd_wait_of_chain(hd_scheduler *scheduler, VALUE root);

/* The root of the chain of fibers that runs now. */
VALUE hd_root(const hd_scheduler *scheduler);

/* Has the fiber resumed another one, in which it waits? */
bool hd_resumes_another(VALUE fiber);

/* Raises the exception in the fiber: now if it (or one that it has resumed) is parked, else when it next parks; and not
 * before the end of a handle_interrupt that holds it back. From any thread with the GVL. */
void hd_interrupt_fiber(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* Raises the exception when the fiber parks next, or at the end of the handle_interrupt that holds it back. */
void hd_put_off(hd_scheduler *scheduler, VALUE fiber, VALUE exception);

/* Raises what was put off in the running chain of fibers, unless it is masked more strictly. */
void hd_raise_put_off(hd_scheduler *scheduler, hd_mask strictest);

/* An exception that came too late to be raised in this fiber goes with it. */
void hd_drop_put_off(hd_scheduler *scheduler);

/* What is to be raised in the thread that runs the scheduler. The first one stays. */
void hd_raise_at_home(hd_scheduler *scheduler, VALUE error);

/* What was put off is not to be raised any more, in whichever fiber it was to be. */
void hd_withdraw(hd_scheduler *scheduler, VALUE exception);

/* Makes an unblock of a wait that an exception or a timeout has ended. The exception comes at the fiber's next wait. */
void hd_take_over(hd_scheduler *scheduler, hd_wait *wait);

/* Settles a wait, from any thread with the GVL, and wakes its scheduler if it sleeps. */
bool hd_wake_wait(hd_wait *wait, hd_wake wake, VALUE exception);

#endif
