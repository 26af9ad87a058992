/* The fibers that a scheduler starts, for tasks and for Fiber.schedule: how they begin, run and end. */
#pragma once

#include "park.h"

/* Runs the work, a Heddle::Task or a Proc, in a new fiber, at once, until it parks or ends; then the caller goes on. */
VALUE hd_start_fiber(hd_scheduler *scheduler, VALUE work, VALUE task);

/* Runs switch_away(argument) with the current fiber in the ready queue. */
VALUE hd_run_instead(hd_scheduler *scheduler, hd_place place, VALUE (*switch_away)(VALUE), VALUE argument);

/* Calls task.ended. What is sent to the thread meanwhile (Thread#raise) is raised where the scheduler runs,
 * and the task, which would never be missed, tells of its end once more. */
void hd_end_task(hd_scheduler *scheduler, VALUE task);
