/* The definitions of the extension: each file that defines something has a function hd_init_NAME. They are called in
 * this order. */
#pragma once

#include "compat.h"

extern VALUE hd_mHeddle, hd_eError; /* Heddle and Heddle::Error */

#define HD_INITS(init) \
    init(fiber_insides) \
    init(stack_pool) \
    init(scheduler) \
    init(scheduler_class) \
    init(ruby_clock) \
    init(frame) \
    init(pending) \
    init(turn) \
    init(timeout) \
    init(core_ext) \
    init(fiber_stacks) \
    init(scheduled_fiber) \
    init(hooks_fiber) \
    init(fiber_raise) \
    init(hooks_block) \
    init(transfer) \
    init(way) \
    init(hooks_io) \
    init(hooks_select) \
    init(shared_io) \
    init(hooks_close) \
    init(io_close) \
    init(hooks_timeout) \
    init(scope_limit) \
    init(hooks_process) \
    init(lookup_call) \
    init(hooks_resolve) \
    init(name_lookup) \
    init(dump) \
    init(stats) \
    init(would_block_errors) \
    init(handle_interrupt) \
    init(in_handler) \
    init(new_fiber) \
    init(unblock_relay) \
    init(service_names) \
    init(thread_calls) \
    init(mutex_sleep) \
    init(inline_call) \
    init(cached_path) \
    init(pool_calls) \
    init(overdue) \
    init(deadlock) \
    init(lock_cycles) \
    init(chdir) \
    init(ractor_new) \
    init(file_open) \
    init(flush) \
    init(direct_io) \
    init(direct_read) \
    init(direct_socket) \
    init(fork_child) \
    init(direct_sleep) \
    init(joined_write) \
    init(send_file) \
    init(tcp_connect) \
    init(whole_file) \
    init(pwrite) \
    init(top_frame) \
    init(interrupt_queue) \
    init(watch) \
    init(stalls) \
    init(time_slice) \
    init(test_clock) \
    init(idle_set) \
    init(http_bytes)

#define HD_DECLARE_INIT(name) void hd_init_##name(void);
HD_INITS(HD_DECLARE_INIT)
