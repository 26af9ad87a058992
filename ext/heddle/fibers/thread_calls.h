/* Calls of a program to a thread that runs a scheduler: Thread#raise, #wakeup, #run and Thread.stop. */
#pragma once

#include "scheduler.h"

/* Was the exception sent to the thread of the scheduler by Thread#raise? */
bool hd_thread_was_sent(const hd_scheduler *scheduler, VALUE exception);
