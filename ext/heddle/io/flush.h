/* Writing the write buffer of an IO. */
#pragma once

#include "fibers/scheduler.h"

/* Flushes a writable IO. In a fiber of a Heddle scheduler only that fiber waits. */
void hd_flush(VALUE io);

/* Flushes as hd_flush does where Ruby itself would hold up the thread. Anywhere else it does nothing. */
void hd_flush_before_ruby_does(VALUE io);
