/* THE INTERRUPT QUEUE of a thread: the exceptions and kills that other threads have sent to it, until Ruby raises them.
 *
 * Problem: what is raised in a postponed job gets lost. An exception could be raised at the fiber's next wait, but a
 * fiber that computes may have none, and a Thread#kill cannot be raised a second time: for Ruby the thread is dying
 * already. Way: it goes back into the queue. Ruby looks at the queue right after the job, where it may raise.
 *
 * Rejected: Fiber#kill instead of Thread#kill at the next wait. In a thread's first fiber, Thread#join aborts Ruby 3.3
 * and 3.4 after that.
 *
 * Price: the queue is found among Ruby's insides, because no method writes to the queue of the current thread. It is
 * one of two hidden lists of the thread. When the gem is loaded, Heddle finds out which of them it is. If it is not
 * found, there are no time slices.
 *
 * Sources: CRuby's thread.c (rb_threadptr_pending_interrupt_enque, rb_threadptr_execute_interrupts), vm.c
 * (thread_mark). */
#pragma once

#include "caught.h"
#include "ruby_internals.h"

/* Finds the two lists of the current thread: the queue, and the masks of Thread.handle_interrupt. */
void hd_find_thread_lists(hd_hidden_objects *lists);

/* Is the queue known? */
bool hd_knows_interrupt_queue(void);

/* At the end of a postponed job: lets Ruby raise what was caught in it right after the job. A Fiber#kill is not raised,
 * because Ruby raises it again after each switch to the fiber. A throw is dropped. errinfo becomes what it was before
 * the catch. */
void hd_raise_after_job(const hd_caught *caught, VALUE errinfo);
