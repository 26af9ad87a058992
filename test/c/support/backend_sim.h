/* A simulated backend: virtual time, virtual descriptors, and a seed that decides about everything the seam's
 * contract (core/backend.h) leaves open. Test builds only.
 *
 * The simulated kernel is a small, honest one: files with references, readiness as poll(2) has it, one-shot poll
 * requests that hold their file until they fire or are removed (as io_uring does). The faults decide how nasty it
 * is: completions come late, in any order and twice, also for requests that were disarmed in the meantime; reads find
 * no buffer; polls return for nothing; timeouts overshoot; arming fails. There is one simulation a process, used by one
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/interest.h"

typedef struct {
    unsigned spurious_percent;   /* a poll returns early, for nothing (as after a signal) */
    unsigned duplicate_percent;  /* a completion is posted twice */
    unsigned phantom_percent;    /* readiness is reported that is not there (lost to another reader) */
    unsigned extra_bits_percent; /* ... with bits that nobody asked for */
    unsigned arm_error_percent;  /* -ENOMEM or -EAGAIN */
    unsigned no_buffer_percent;  /* a read reports readiness instead */
    bool late_bad_fd;            /* a closed number is refused by a delivery, not by arm */
    bool files_pollable;         /* a regular file is ready at once; else arm says -EPERM */
    bool shuffle;                /* completions come in any order */
    int64_t delay_ns_max;        /* a completion is posted at most this long after the event */
    int64_t overshoot_ns_max;    /* a poll that times out returns at most this much too late */
} sim_faults;

extern const hd_backend_ops hd_backend_sim;

/* A new, empty world in which time is at zero and then some; hd_clock_now tells its time until sim_stop. */
void sim_start(uint64_t seed, sim_faults faults);

/* Aborts if a descriptor or a request of the kernel is left. */
void sim_stop(void);

int64_t sim_now(void);
void sim_advance(int64_t ns);

/* -- the world: what system calls would do ------------------------------------------------------------------- */

int sim_pair(int fds[2]); /* a stream socket pair */
int sim_file(void);       /* a regular file */
int sim_dup(int fd);
void sim_close(int fd);
void sim_write(int fd, int bytes); /* they can be read from the peer: 0, 1, 2, ... 255, 0, ... */
int sim_read(int fd);              /* takes everything; -1 = would block, 0 = end of file */
int sim_take(int fd, char *bytes, int most); /* the largest number that it takes */
short sim_ready(int fd);           /* poll(2)'s answer */
int sim_descriptors(void);

/* Something that comes about by itself at that time, also while a poll waits: bytes arrive, another thread wakes
 * a fiber. It must not arm, disarm or release files. */
void sim_at(int64_t when_ns, void (*action)(void *argument), void *argument);

/* Actions that have not happened yet. */
int sim_pending(void);
