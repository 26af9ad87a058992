/* Jobs of native workers (os/worker.h) for which a fiber waits. */
#pragma once

#include "scheduler.h"

/* Runs a job on a worker while this fiber is parked, or on this thread if no worker can be had. The caller releases
 * the job. subject: for reports. */
void hd_run_on_worker(hd_scheduler *scheduler, hd_job *job, VALUE subject);

/* Submits a job for which nobody waits yet; runs it on this thread if no worker can be had. */
void hd_submit_or_run(hd_scheduler *scheduler, hd_job *job);
