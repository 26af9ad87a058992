/* Closing an IO that fibers wait on.
 *
 * Waiters belong to an IO object, not to a descriptor number. A close wakes exactly the waiters of that object, once,
 * with IOError. It lets them unwind, makes the kernel let go of the file, and only then closes it. closing.c says why.
 *
 * The parameter kept is the name under which Heddle has kept Ruby's own method. */
#pragma once

#include "fibers/scheduler.h"

/* Closes the descriptor of these directions (POLLIN, POLLOUT) by Ruby's method. */
VALUE hd_close_for(VALUE io, ID kept, short directions);

/* Does a half close leave the descriptor open? Ruby shuts one direction of a socket down as long as the other one is in
 * use. It refuses to close an IO for one direction if it is open for the other one only. */
bool hd_stays_open(VALUE io, int other_direction);

/* Shuts one direction down by Ruby's method. The fibers that wait in this direction try again and find end of file or
 * EPIPE, as threads do. */
VALUE hd_shut_down(VALUE io, ID kept, short events);

/* Reopens an IO by Ruby's method. Its waiters get IOError, also fibers that begin to wait before the descriptor is
 * another file's. The waiters of a twin try again, on that file. */
VALUE hd_reopen(VALUE io, ID kept, int argc, VALUE *argv);

/* Wakes the waiters of an IO that Ruby is about to close without the method IO#close. */
void hd_wake_waiters(VALUE io);

/* Closes the descriptor inline, without a switch of fibers. Returns 0 or -errno. */
int hd_close_descriptor(int fd);

/* Ends the operation on an IO for which the fiber is parked. Returns false if it is not parked for one. */
bool hd_interrupt_operation(hd_scheduler *scheduler, VALUE fiber, VALUE exception);
