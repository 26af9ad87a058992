/* Writing what is in the write buffer of an IO. */
#pragma once

#include "fibers/scheduler.h"

/* Flushes a writable IO; in a fiber of a Heddle scheduler only that fiber waits. */
void hd_flush(VALUE io);

/* The same, where Ruby itself would hold up the thread; anywhere else it does nothing. */
void hd_flush_before_ruby_does(VALUE io);
