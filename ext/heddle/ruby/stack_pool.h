/* STACK POOL: the stacks that Ruby keeps for new fibers (cont.c, struct fiber_pool).
 *
 * Problem: when a fiber is freed, Ruby tells the kernel that the memory of its stack is not needed (one madvise), and
 * the next fiber on this stack pays for it with a page fault for each page that it touches. The pool has a field that
 * says whether Ruby does so (free_stacks), but only an environment variable sets it, before Ruby starts.
 *
 * Way: each fiber has a record of its stack, which names the pool. The record is found in the memory of a running
 * fiber: its bounds contain the address of a local variable. The fields of the pool are confirmed by what Ruby does:
 * the number of stacks in use rises by one while another fiber lives, and what an ended fiber has left on its stack is
 * there afterwards, or is not, as the field says. The list of vacant stacks must have as many as the pool says.
 *
 * Rejected: RUBY_SHARED_FIBER_POOL_FREE_STACKS=0 and a second start of Ruby (the program would start twice). A pool of
 * fibers that run one task after another (Fiber objects, their storage and $~ would be shared).
 *
 * Price: about 50 us when the extension is loaded. Memory stays with Ruby until Heddle gives it back: see
 * fibers/warm_stacks.h. A public switch of Ruby would make this file superfluous. */
#pragma once

#include "compat.h"

/* Was the pool found, and may it be changed? */
bool hd_stack_pool_found(void);

/* Makes Ruby keep the memory of stacks from now on, or give it back as it does by itself. */
void hd_stack_pool_keeps_memory(bool keeps);

/* Returns the number of stacks of fibers that have not been freed. */
size_t hd_stack_pool_used(void);

/* Returns the number of stacks that wait for a fiber. */
size_t hd_stack_pool_vacant(void);

/* The beginning of a pass over the vacant stacks: their memory is given back to the kernel, except for that of the
 * first ones in the list, which new fibers get first. */
void hd_stack_pool_begin_pass(size_t kept);

/* Goes on with the pass until it is complete or the time has come. The caller makes sure that no other Ractor makes or
 * frees a fiber meanwhile. Returns true when it is complete. */
bool hd_stack_pool_pass(int64_t until_ns);
