/* Native worker threads for calls that block and know nothing of Ruby: getaddrinfo, file reads and writes.
 * One small pool a process, started at first use; it grows to HD_WORKERS_MAX and shrinks when idle. The queue
 * is first come first served. A job's result comes back through the inbox of the reactor that asked. */
#ifndef HEDDLE_WORKER_H
#define HEDDLE_WORKER_H

#include <stdbool.h>

#include "../core/reactor.h"

enum { HD_WORKERS_MAX = 16, HD_WORKER_IDLE_SECONDS = 5 };

/* Where finished jobs wait for their reactor. */
typedef struct hd_inbox {
    hd_list finished;
    hd_reactor *reactor;
    int pending; /* finished, not yet drained; read without the lock as a hint */
} hd_inbox;

typedef enum { HD_JOB_NEW, HD_JOB_QUEUED, HD_JOB_RUNNING, HD_JOB_FINISHED, HD_JOB_ABANDONED } hd_job_state;

/* Heap memory, embedded at the start of the caller's record. */
typedef struct hd_job {
    hd_node node;
    hd_job_state state;
    hd_wait *wait;
    hd_inbox *inbox;
    void (*run)(struct hd_job *job);  /* on a worker, without the GVL; must not fail to return in the end */
    void (*free)(struct hd_job *job); /* releases the record */
} hd_job;

void hd_inbox_init(hd_inbox *inbox, hd_reactor *reactor);

/* 0 or -errno when no worker could be started. On success `wait` is settled when the job has run. */
int hd_worker_submit(hd_job *job, hd_inbox *inbox, hd_wait *wait);

/* In the child of a fork a job of the parent is never released: the child's queue knows nothing of it.
 *
 * The caller is done with the job (it has run, or its result is no longer wanted). It is freed now, or by the
 * worker that is running it. */
void hd_worker_release(hd_job *job);

/* Settles the waits of the finished jobs. With the GVL. */
void hd_inbox_drain(hd_inbox *inbox);

/* Workers alive and jobs queued, for reports. */
void hd_worker_stats(int *threads, int *queued);

#endif
