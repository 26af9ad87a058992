/* Native worker threads for calls that block and know nothing of Ruby: getaddrinfo, file reads and writes.
 * A small pool a process for each of the two, so that names that nobody answers for do not hold up files; and one for
 * the lookups of each single family of addresses, which are made beside one for both that takes long: they take no
 * worker from another name, and dead name servers for the one do not hold up the other. A pool is
 * started at first use, grows to its limit and shrinks when idle. Its queue is first come first served; a job that
 * asks for the same as one that is in the queue, or has been running for less than HD_SHARED_SECONDS, runs with that
 * one: however many want a slow name, it keeps few workers from the others.
 * A job's result comes back through the inbox of the reactor that asked. */
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

/* Where finished jobs wait for their reactor. */
typedef struct hd_inbox {
    hd_list finished;
    hd_reactor *reactor;
    int pending; /* finished, not yet drained; read without the lock as a hint */
    bool closed; /* nobody looks into it any more */
} hd_inbox;

typedef enum {
    HD_JOB_NEW,
    HD_JOB_SUBMITTED, /* in the queue, or running */
    HD_JOB_FOLLOWING, /* gets the result of another one */
    HD_JOB_FINISHED,
    HD_JOB_ABANDONED /* as SUBMITTED, but its caller has released it */
} hd_job_state;

struct hd_job;

/* What a kind of job does. */
typedef struct {
    void (*run)(struct hd_job *job);  /* on a worker, without the GVL; must not fail to return in the end */
    void (*free)(struct hd_job *job); /* releases the record */
    /* May the one have the other's result? NULL: never. */
    bool (*same)(const struct hd_job *job, const struct hd_job *other);
    void (*copy_result)(struct hd_job *job, const struct hd_job *other);
} hd_job_type;

/* Heap memory, embedded at the start of the caller's record. */
typedef struct hd_job {
    const hd_job_type *type;
    hd_node node;      /* in the queue, among the running, with the followers of another one, or in the inbox */
    hd_list followers; /* the jobs that get this one's result */
    struct hd_job *followed;
    hd_pool pool;
    hd_job_state state;
    unsigned fork_generation;
    int64_t started_ns; /* 0: it has not */
    hd_wait *wait; /* or NULL */
    bool had_wait; /* at any time; for the owner alone */
    hd_inbox *inbox;
} hd_job;

void hd_inbox_init(hd_inbox *inbox, hd_reactor *reactor);

void hd_job_init(hd_job *job, const hd_job_type *type, hd_pool pool);

/* 0 or -errno when no worker could be started. On success `wait` (may be NULL) is settled when the job has run. */
int hd_job_submit(hd_job *job, hd_inbox *inbox, hd_wait *wait);

/* Runs the job now, on the calling thread: for one that takes no time, or that no worker is there for. */
void hd_job_run_inline(hd_job *job);

/* Settles another wait when the job has run, at once if it has; NULL: none. With the GVL. */
void hd_job_set_wait(hd_job *job, hd_wait *wait);

/* Has the job run? Then its result may be read. (In the child of a fork a job of the parent has ended: with what it is
 * made with, as one that was interrupted.) */
bool hd_job_finished(hd_job *job);

/* The caller is done with the job (it has run, or its result is no longer wanted). It is freed now, or by the
 * worker that is running it. (A child of a fork frees its copy of a job of the parent: no worker knows that one.) */
void hd_job_release(hd_job *job);

/* Settles the waits of the finished jobs. With the GVL. */
void hd_inbox_drain(hd_inbox *inbox);

/* Before the backend is closed: jobs of fibers that are left are not to wake it. The inbox may be freed after this,
 * before its jobs are released. */
void hd_inbox_close(hd_inbox *inbox);

/* Workers alive and jobs queued in all pools, for reports. */
void hd_worker_stats(int *threads, int *queued);
