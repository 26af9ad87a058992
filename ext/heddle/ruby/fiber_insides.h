/* What Heddle finds in Ruby's structs of fibers and threads, and may write there. No public function reaches it:
 *
 *  - whether a fiber is blocking: a bit of the fiber, and a counter of its thread. (A public Fiber.nonblocking would
 *    do.) With it the block of Heddle.run runs in the fiber of its caller, also in the root fiber of a thread, which
 *    Ruby makes blocking.
 *  - which fiber has resumed a fiber. (A public Fiber#resumer would do.) With it Heddle knows where control goes when a
 *    fiber ends.
 *  - where a fiber keeps $~ and $_. (An rb_fiber_new that takes a block of Ruby would do.)
 *
 * Problem: the places differ between versions and builds of Ruby. Way: they are found when the extension is loaded. The
 * memory of a fiber and of its thread is compared inside and outside of Fiber.blocking; a place is taken only if it is
 * the single one that changes as it must, and if Fiber#blocking? and Fiber.blocking? follow when it is toggled.
 * Rejected: offsets by version (a patched or differently configured Ruby would crash), and copies of Ruby's private
 * headers. Price: about 30 us when the extension is loaded. Where a place is not found, or is switched off
 * (HEDDLE_WITHOUT, HEDDLE_SAFE), each user of it has another way. */
#pragma once

#include "compat.h"

/* Can a blocking fiber be made non-blocking for a while? */
bool hd_fibers_can_be_unblocked(void);

/* Runs function(argument) in the current fiber, which is not blocking meanwhile. Afterwards it is as blocking as it was
 * before, however the function ends. */
VALUE hd_unblocked(VALUE (*function)(VALUE), VALUE argument);

typedef enum { HD_LANDS_ELSEWHERE, HD_LANDS_THERE, HD_LANDING_UNKNOWN } hd_landing_place;

/* When a fiber ends that was entered by transfer, Ruby gives control to the end of the root fiber's resume chain
 * (cont.c, return_fiber). Is this fiber the end? It has resumed no other one. */
hd_landing_place hd_lands_at(VALUE fiber);

/* Gives the fiber that runs a $~ and a $_ of its own while it runs this block, as a thread has them. Ruby keeps them in
 * the method in which the block stands, except for the block that the fiber was made with; but a scheduled fiber is
 * made with another one. It does nothing where the place is not known. */
void hd_match_apart(VALUE block);
