/* FIBER INSIDES: what Heddle finds in Ruby's structs of fibers and threads, and may write there. No public function
 * gives access to these:
 *
 *  - whether a fiber is blocking: a bit of the fiber, and a counter of its thread. With it the block of Heddle.run
 *    runs in the fiber of its caller, also in the root fiber of a thread, which Ruby makes blocking. A public
 *    Fiber.nonblocking would make it superfluous.
 *  - which fiber has resumed a fiber. With it Heddle knows where control goes when a fiber ends. A public
 *    Fiber#resumer would make it superfluous.
 *  - the value that was last passed to a fiber. Ruby reads it at the end of a switch, after it has run the handlers of
 *    signals. A handler that waits there would change it, and Enumerator#next would return a wrong value.
 *  - where a fiber has its $~ and $_. An rb_fiber_new that takes a block of Ruby would make it superfluous.
 *
 * Problem: the places differ between versions and builds of Ruby. Way: they are found when the extension is loaded.
 * The memory of a fiber and of its thread is compared inside and outside of Fiber.blocking. A place is used only if
 * it is the single one that changes as it must, and if Fiber#blocking? and Fiber.blocking? follow when it is
 * toggled.
 *
 * Rejected: offsets by version (a patched or differently configured Ruby would crash), and copies of Ruby's private
 * headers.
 *
 * Price: about 30 us when the extension is loaded. Where a place is not found, or is switched off (HEDDLE_WITHOUT,
 * HEDDLE_SAFE), each user of it has another way. */
#pragma once

#include "compat.h"

/* Returns the size of the memory of a fiber or of the current thread; 0: it is not known. */
size_t hd_size_of_memory(VALUE object);

/* Runs function(argument) in the current fiber, which is not blocking meanwhile if the places were found. Afterwards it
 * is as blocking as before, however the function ends. */
VALUE hd_unblocked(VALUE (*function)(VALUE), VALUE argument);

/* Is this fiber in the root fiber's resume chain? When a fiber ends that was entered by transfer, Ruby gives control to
 * the end of this chain (cont.c, return_fiber). True if that is not known. */
bool hd_is_in_root_chain(VALUE fiber);

/* What the last switch to a fiber has passed to it. */
typedef struct {
    int count; /* of values; -1: an exception, for Fiber#raise */
    VALUE value;
} hd_passed;

/* Returns what was passed to this fiber, and passes it once more, without a switch. Nothing happens where the place is
 * not known. */
hd_passed hd_passed_to(VALUE fiber);
void hd_pass_again(VALUE fiber, hd_passed passed);

/* Gives the running fiber a $~ and a $_ of its own while it runs this block, as a thread has them. Ruby keeps them
 * in the method in which the block stands. Only the block with which the fiber was made has its own, and a scheduled
 * fiber is made with another one. Does nothing where the place is not known. */
void hd_match_apart(VALUE block);
