/* The calls of Mutex#sleep and ConditionVariable#wait: what hook_block.c must know of them. */
#pragma once

#include "frame.h"

typedef struct {
    hd_frame frame;
    VALUE self, condition;      /* condition: nil for Mutex#sleep */
    /* the exception that came while the fiber locked it again, and an Array of later ones; or nil */
    VALUE mutex, raised, later;
    ID kept; /* Ruby's own method, by its second name */
    int argc;
    VALUE *argv;
    bool sleeps;    /* it is about to call kernel_sleep, and needs to know how that ends */
    bool timed_out; /* how kernel_sleep has ended */
} hd_mutex_sleep;

/* The call for which this fiber calls kernel_sleep, or NULL. Only the first kernel_sleep of a call is for it. */
hd_mutex_sleep *hd_mutex_sleep_begins(hd_scheduler *scheduler);

/* Waits for a Mutex that the fiber has to lock again after it has slept. False: the fiber has not slept for this
 * one. */
bool hd_lock_again(hd_scheduler *scheduler, VALUE mutex);
