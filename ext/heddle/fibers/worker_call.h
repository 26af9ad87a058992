/* Jobs of native workers (os/worker.h) that a fiber waits for. */
#pragma once

#include "scheduler.h"

/* Runs a job on a worker while this fiber is parked; on this thread, if there is no worker to be had. The caller
 * releases the job. subject: for reports. */
void hd_run_on_worker(hd_scheduler *scheduler, hd_job *job, VALUE subject);

/* Submits a job that nobody waits for yet; runs it on this thread, if there is no worker to be had. */
void hd_submit_or_run(hd_scheduler *scheduler, hd_job *job);
