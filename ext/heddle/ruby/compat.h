/* The differences between Ruby versions, each with its version; extconf.rb probes. Only this file asks for them in
 * C. Ruby code finds some of them in Heddle::RubyFeatures (see core_ext.c), and the others in
 * lib/heddle/internal/ruby_features.rb. */
#pragma once

#include <ruby.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <ruby/ractor.h>
#include <ruby/thread.h>
#include <ruby/version.h>

/* 4.1 (scheduler version 4, Ruby pull request 18483): the io_read family takes (io, buffer, offset, length),
 * length is the maximum of ONE transfer, and a transfer that would block returns -EAGAIN. */
#if defined(RUBY_FIBER_SCHEDULER_VERSION) && RUBY_FIBER_SCHEDULER_VERSION >= 4
#define HD_OFFSET_BEFORE_LENGTH 1
#else
#define HD_OFFSET_BEFORE_LENGTH 0
#endif

/* 3.4: calls that open, look up or remove a file are passed to blocking_operation_wait. */
#define HD_OPEN_IS_OFFLOADED (RUBY_API_VERSION_CODE >= 30400)

#define HD_BOOL(condition) ((condition) ? Qtrue : Qfalse)

/* Up to 3.4 Ruby flushes the write buffer of an IO without asking io_write (Bug #21789). */
#define HD_FLUSH_PASSES_BY_IO_WRITE (RUBY_API_VERSION_CODE < 40000)

/* 3.3: accept, recv and similar methods take the end of an IO#timeout for an EAGAIN. */
#define HD_CALLERS_OF_IO_WAIT_FORGET_TIMEOUT (RUBY_API_VERSION_CODE < 30400)

/* 3.3 and 3.4: IO#close waits with a mutex for the threads that use the IO. Each of them hands it over by unblock. */
#define HD_CLOSE_HANDS_OVER_A_MUTEX (RUBY_API_VERSION_CODE < 40000)

/* 4.0: for IO.select, infinity is no timeout. Elsewhere, and in older Rubies, it is a RangeError. */
#define HD_SELECT_TAKES_INFINITY (RUBY_API_VERSION_CODE >= 40000)

/* 4.0: Thread#raise takes the option cause:. */
#define HD_THREAD_RAISE_TAKES_CAUSE (RUBY_API_VERSION_CODE >= 40000)

/* 4.1: the Interrupt of a Ctrl-C is queued with what the thread was sent, and Thread.handle_interrupt holds it back. */
#define HD_CTRL_C_CAN_BE_HELD_BACK (RUBY_API_VERSION_CODE >= 40100)

/* The value of errinfo in a fiber that Fiber#kill ends (RUBY_FATAL_FIBER_KILLED in Ruby's internal/thread.h). */
#define HD_FIBER_KILLED INT2FIX(2)
