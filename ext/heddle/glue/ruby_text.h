/* What Ruby tells only by its inspect strings. Each with the function that would make it superfluous. */
#ifndef HEDDLE_RUBY_TEXT_H
#define HEDDLE_RUBY_TEXT_H

#include "compat.h"

/* Has the fiber resumed another one, which Heddle may have parked? Ruby strikes that one then, and tells it only here.
 * (Superfluous with a Fiber#resuming?, as rb_fiber_t has it.) */
bool hd_resumes_another(VALUE fiber);

/* Is this fiber, or one that it has resumed, what its thread runs? One that is abandoned is "suspended", or
 * "terminated". (Superfluous with a Thread#current_fiber.) */
bool hd_fiber_runs(VALUE fiber);

/* Is the thread in a call of the system? Then it "sleeps". */
bool hd_thread_in_system_call(VALUE thread);

#endif
