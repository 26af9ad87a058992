/* The list of inits: what the extension defines. */
#include "closer.h"
#include "core_ext.h"
#include "deadlock.h"
#include "file_open.h"
#include "flush.h"
#include "frame.h"
#include "hand_over.h"
#include "handle_interrupt.h"
#include "hook_io.h"
#include "home.h"
#include "hook_fiber.h"
#include "inline_call.h"
#include "joined_write.h"
#include "cached_path.h"
#include "mutex_sleep.h"
#include "new_fiber.h"
#include "offload.h"
#include "overdue.h"
#include "pwrite.h"
#include "scheduler.h"
#include "scheduler_class.h"
#include "send_file.h"
#include "service_names.h"
#include "strike.h"
#include "tcp_connect.h"
#include "thread_calls.h"
#include "timeout.h"
#include "whole_file.h"
#include "would_block_errors.h"

VALUE hd_mHeddle, hd_eError;

__attribute__((visibility("default"))) void Init_heddle_native(void)
{
    rb_ext_ractor_safe(true);
    hd_mHeddle = rb_define_module("Heddle");
    hd_eError = rb_define_class_under(hd_mHeddle, "Error", rb_eStandardError);
    hd_init_scheduler();
    hd_init_scheduler_class();
    hd_init_frame();
    hd_init_strike();
    hd_init_timeout();
    hd_init_core_ext();
    hd_init_hooks_fiber();
    hd_init_hooks_block();
    hd_init_hooks_io();
    hd_init_hooks_select();
    hd_init_hooks_close();
    hd_init_hooks_timeout();
    hd_init_hooks_process();
    hd_init_hooks_resolve();
    hd_init_name_lookup();
    hd_init_dump();
    hd_init_would_block_errors();
    hd_init_handle_interrupt();
    hd_init_home();
    hd_init_new_fiber();
    hd_init_hand_over();
    hd_init_service_names();
    hd_init_thread_calls();
    hd_init_mutex_sleep();
    hd_init_inline_call();
    hd_init_cached_path();
    hd_init_offload();
    hd_init_overdue();
    hd_init_closer();
    hd_init_deadlock();
    hd_init_file_open();
    hd_init_flush();
    hd_init_joined_write();
    hd_init_send_file();
    hd_init_tcp_connect();
    hd_init_whole_file();
    hd_init_pwrite();
}
