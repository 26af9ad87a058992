/* WORKER THREADS: native threads for calls that block and do not know Ruby: getaddrinfo, file reads and writes.
 *
 * Problem: such a call would stop all fibers of the thread, and it cannot be interrupted. Way: it is a job for a
 * small pool of workers. A process has one pool for files and one for lookups, so that names for which no server
 * answers do not hold up files. Two more are for lookups of a single family of addresses, which are made beside a
 * lookup of both families that takes long. So they take no worker from another name, and dead name servers for one
 * family do not hold up the other.
 *
 * A pool is started at first use, grows to its limit and shrinks when idle. Its queue is first come first served. A
 * job that asks for the same as a job in the queue, or as one that has been running for less than HD_SHARED_SECONDS,
 * gets the result of that job. So a slow name keeps few workers from other names, however many fibers want it. The
 * result of a job comes back through the inbox of the reactor that has asked.
 *
 * Price: two thread switches for each job. A caller that gives up leaves its job to the worker. Sources:
 * guides/design.md, "Files" and "Names". */
#pragma once

#include <stdbool.h>

#include "core/wait.h"
#include "fork.h"

enum {
    HD_WORKERS_MAX = 16,
    HD_LOOKUP_WORKERS_MAX = 56,
    HD_FAMILY_WORKERS_MAX = 4,
    HD_WORKER_IDLE_SECONDS = 5,
    HD_SHARED_SECONDS = 5
};

typedef enum { HD_POOL_FILES, HD_POOL_LOOKUPS, HD_POOL_IPV4_LOOKUPS, HD_POOL_IPV6_LOOKUPS, HD_POOLS } hd_pool;

/* The inbox: finished jobs wait there for their reactor. */
typedef struct hd_inbox {
    hd_list finished;
    hd_reactor *reactor;
    int pending; /* number of jobs that are finished and not yet drained; read without the lock as a hint */
    bool closed; /* nobody looks into it any longer */
} hd_inbox;

typedef enum {
    HD_JOB_NEW,
    HD_JOB_SUBMITTED, /* in the queue, or running */
    HD_JOB_FOLLOWING, /* gets the result of another job */
    HD_JOB_FINISHED,
    HD_JOB_ABANDONED /* submitted, but its caller has released it */
} hd_job_state;

struct hd_job;

/* The functions of a kind of job. */
typedef struct {
    void (*run)(struct hd_job *job);  /* on a worker, without the GVL; must return in the end */
    void (*free)(struct hd_job *job); /* releases the record */
    /* May the one job have the other's result? NULL: never. */
    bool (*same)(const struct hd_job *job, const struct hd_job *other);
    void (*copy_result)(struct hd_job *job, const struct hd_job *other);
} hd_job_type;

/* A job: heap memory, embedded at the start of the caller's record. */
typedef struct hd_job {
    const hd_job_type *type;
    hd_node node;      /* in the queue, among the running, with the followers of another job, or in the inbox */
    hd_list followers; /* the jobs that get this one's result */
    struct hd_job *followed;
    hd_pool pool;
    hd_job_state state;
    unsigned fork_generation;
    int64_t started_ns; /* 0: it has not started */
    hd_wait *wait; /* or NULL */
    bool had_wait; /* it has had a wait at any time; only for the owner */
    hd_inbox *inbox;
} hd_job;

void hd_inbox_init(hd_inbox *inbox, hd_reactor *reactor);

void hd_job_init(hd_job *job, const hd_job_type *type, hd_pool pool);

/* Submits a job. Returns 0, or -errno when no worker could be started. On success `wait` (may be NULL) is settled
 * when the job has run. */
int hd_job_submit(hd_job *job, hd_inbox *inbox, hd_wait *wait);

/* Runs the job now, on the calling thread. It is for a job that takes no time, or for which there is no worker. */
void hd_job_run_inline(hd_job *job);

/* Sets the wait that is settled when the job has run, at once if it has; NULL: none. With the GVL. */
void hd_job_set_wait(hd_job *job, hd_wait *wait);

/* Has the job run? Then its result may be read. In the child of a fork a job of the parent counts as ended. Its
 * result is then what it was made with: -EINTR for a file, EAI_AGAIN for a lookup. */
bool hd_job_finished(hd_job *job);

/* Releases a job: it has run, or the caller no longer wants its result. It is freed now, or by the worker that is
 * running it. In the child of a fork, a copy of a job of the parent is freed now, because no worker knows it. */
void hd_job_release(hd_job *job);

/* Settles the waits of the finished jobs. With the GVL. */
void hd_inbox_drain(hd_inbox *inbox);

/* Closes the inbox before the backend is closed, because jobs of fibers that are left must not wake the backend. The
 * inbox may be freed after this, before its jobs are released. */
void hd_inbox_close(hd_inbox *inbox);

/* Returns the number of workers alive and of jobs queued in all pools, for reports. */
void hd_worker_stats(int *threads, int *queued);
