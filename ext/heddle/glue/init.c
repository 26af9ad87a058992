/* The list of inits: what the extension defines. */
#include "closer.h"
#include "core_ext.h"
#include "deadlock.h"
#include "file_open.h"
#include "flush.h"
#include "hand_over.h"
#include "interrupt_mask.h"
#include "interrupts.h"
#include "joined_write.h"
#include "offload.h"
#include "pwrite.h"
#include "quick.h"
#include "scheduler.h"
#include "send_file.h"
#include "service_names.h"
#include "tcp_connect.h"
#include "thread_calls.h"
#include "timed_sleep.h"
#include "watch.h"
#include "whole_file.h"
#include "would_block.h"

VALUE hd_mHeddle, hd_eError;

__attribute__((visibility("default"))) void Init_heddle_native(void)
{
    rb_ext_ractor_safe(true);
    hd_mHeddle = rb_define_module("Heddle");
    hd_eError = rb_define_class_under(hd_mHeddle, "Error", rb_eStandardError);
    hd_init_scheduler();
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
    hd_init_report();
    hd_init_would_block_errors();
    hd_init_interrupt_mask();
    hd_init_interrupts();
    hd_init_hand_over();
    hd_init_service_names();
    hd_init_thread_calls();
    hd_init_timed_sleep();
    hd_init_quick();
    hd_init_offload();
    hd_init_watch();
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
