/* The fibers that a scheduler starts, for tasks and for Fiber.schedule: how they begin, run and end. */
#pragma once

#include "park.h"

/* Runs the work, a Heddle::Task or a Proc, in a new fiber at once. The caller goes on when that fiber parks or ends. */
VALUE hd_start_fiber(hd_scheduler *scheduler, VALUE work, VALUE task);

/* Runs switch_away(argument) while the current fiber stands in the ready queue. */
VALUE hd_run_instead(hd_scheduler *scheduler, hd_place place, VALUE (*switch_away)(VALUE), VALUE argument);

/* Calls task.ended. An exception that is sent to the thread meanwhile (Thread#raise) is raised where the scheduler
 * runs, and task.ended is called once more. Otherwise the end of the task would never be noticed. */
void hd_end_task(hd_scheduler *scheduler, VALUE task);
