/* Mutex#sleep and ConditionVariable#wait: what hook_block.c needs to know of a call that sleeps for one of them. */
#pragma once

#include "frame.h"

typedef struct {
    hd_frame frame;
    VALUE self, condition;      /* condition: nil for Mutex#sleep */
    VALUE mutex, struck, later; /* what came while the fiber locked it again, and an Array of what came later; or nil */
    ID kept; /* Ruby's own method */
    int argc;
    VALUE *argv;
    bool sleeps;    /* it is about to call kernel_sleep, and has an answer to give */
    bool timed_out; /* the answer, told by kernel_sleep */
} hd_mutex_sleep;

/* The call that a kernel_sleep of this fiber is made for, or NULL. Only the first kernel_sleep is. */
hd_mutex_sleep *hd_mutex_sleep_begins(hd_scheduler *scheduler);

/* Waits for a Mutex that the fiber has to lock again after it has slept; false: it is no such one. */
bool hd_lock_again(hd_scheduler *scheduler, VALUE mutex);
