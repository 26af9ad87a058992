/* WARM STACKS: the memory of ended fibers' stacks is kept for the fibers that come next.
 *
 * Problem: a stack whose memory Ruby has given back costs the next fiber an madvise and two or three page faults. That
 * is most of what starting a task costs. But memory that is kept for ever is lost to the machine.
 *
 * Way: while a scheduler is open, Ruby keeps the memory of stacks (ruby/stack_pool.h), and the loop gives it back
 * itself. Twice a second it looks at the number of stacks that the peak of the last second has needed. What the pool
 * has beyond them is given back, a tenth of a millisecond at a time. When the last scheduler closes, Ruby does as
 * before, and where many stacks are warm then, a thread gives them back and ends.
 *
 * Rejected: a thread that lives on beside the loops (it would need the GVL for each look); giving back, at the end of
 * a run, all that is beyond a fixed number (a program that starts 10,000 tasks again and again would pay each time).
 *
 * Price: for a second after a peak the process holds the memory of its stacks. The loop wakes up a few times after
 * tasks have ended. Two comparisons for each task that starts and each look at the kernel. */
#pragma once

#include "scheduler.h"

/* A scheduler begins to use stacks. */
void hd_warm_stacks_open(hd_scheduler *scheduler);

/* The scheduler has ended. */
void hd_warm_stacks_close(hd_scheduler *scheduler);

/* The GC frees the scheduler. No memory is given back then. */
void hd_warm_stacks_forget(hd_scheduler *scheduler);

/* Another Ractor is about to begin. From then on Ruby gives memory back by itself. */
void hd_warm_stacks_leave(void);

/* A fiber is about to get a stack. */
void hd_warm_stacks_note_start(void);

/* Returns when the loop has to look at the stacks next. HD_NO_DEADLINE: it need not, until more stacks are vacant. */
int64_t hd_warm_stacks_due(int64_t now_ns);

/* Looks at the stacks, and gives memory back. */
void hd_warm_stacks_look(int64_t now_ns);
