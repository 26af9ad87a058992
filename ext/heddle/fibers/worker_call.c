/* See worker_call.h. */
#include "worker_call.h"

#include "park.h"

static void *run_job(void *job)
{
    hd_job_run_inline(job);
    return job;
}

static void run_inline(hd_job *job)
{
    /* The call does not begin when an interrupt is pending, which must not be raised here. */
    if (!rb_thread_call_without_gvl2(run_job, job, NULL, NULL)) run_job(job);
}

void hd_run_on_worker(hd_scheduler *scheduler, hd_job *job, VALUE subject)
{
    hd_request request = {.kind = HD_WAIT_FOR_WORKER, .subject = subject, .deadline_ns = HD_NO_DEADLINE, .job = job};
    if (hd_park(scheduler, &request) < 0) run_inline(job);
}

void hd_submit_or_run(hd_scheduler *scheduler, hd_job *job)
{
    if (hd_job_submit(job, &scheduler->inbox, NULL)) run_inline(job);
}
