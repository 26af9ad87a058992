/* THE CLOCK OF A TEST (Heddle::Testing.run): time passes only when all fibers wait.
 *
 * Problem: a test of a program that sleeps and retries takes as long as the program, or replaces the methods that
 * wait. Way: the thread of the scheduler has a clock of its own (hd_clock_own), by which all deadlines are
 * measured. It stands still while fibers run. When all fibers wait, and the kernel has nothing for them, the loop would
 * sleep until the next deadline. Instead it sets the clock to this deadline.
 *
 * A deadline must not overtake an answer that comes from outside. So before each such jump the clock's owner is asked
 * for what the fibers wait (Heddle::Testing::Clock#patience):
 *
 *  - for each other alone: the clock jumps at once;
 *  - also for something that this process itself will soon do: it jumps when nothing has come for the threshold;
 *  - also for somebody else: it does not jump, but goes on as the machine's does while the loop sleeps.
 *
 * Rejected: a clock that runs at a multiple of the machine's (each test would still depend on how fast that is); a
 * clock of the whole process (other threads would wake too early).
 *
 * Price: a branch at each sleep of the loop, and one at each switch. A Timeout does not end a block that computes. The
 * thread must stay with its native thread. Source: trio's MockClock. */
#pragma once

#include "scheduler.h"

/* What the owner of a clock answers. */
typedef enum { HD_JUMPS_AT_ONCE, HD_JUMPS_AFTER_THRESHOLD, HD_GOES_AS_MACHINE } hd_patience;

/* Gives the scheduler a virtual clock, which the owner reads. */
void hd_virtual_clock_begin(hd_scheduler *scheduler, VALUE owner, int64_t threshold_ns);

/* Gives the scheduler the machine's clock again. */
void hd_virtual_clock_end(hd_scheduler *scheduler);

/* Called at home, because it may run a method in Ruby, when no fiber is ready, before the loop sleeps for no longer
 * than *timeout_ns. True: fibers have become ready, because the clock has jumped to their deadline, or because they
 * have waited for this moment. False: the loop must sleep, perhaps for a shorter time. */
bool hd_virtual_clock_goes_on(hd_scheduler *scheduler, int64_t *timeout_ns);

/* Called when the loop has slept. */
void hd_virtual_clock_slept(hd_scheduler *scheduler);
