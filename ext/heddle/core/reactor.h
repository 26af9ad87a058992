/* The reactor: what a loop has (the ready queue, the waits, the timers, a backend) and the steps of its turn. Start
 * reading in glue/loop.c, which takes them.
 *
 * One reactor belongs to one scheduler, thus to one thread. Every function but hd_reactor_poll_nogvl runs with the GVL
 * held; other threads of the same Ractor may then settle waits too.
 *
 * A turn:   timeout = hd_reactor_timeout()          how long the kernel may keep us
 *           hd_reactor_poll_nogvl(timeout)          the only step without the GVL: one system call
 *           hd_reactor_reap()                       completions and due timers fill the ready queue
 *           hd_next_ready() ... switch to it        the glue runs the fibers
 * Reap first, run later: no fiber runs from within a completion. */
#pragma once

#include "backend.h"
#include "clock.h"
#include "histogram.h"
#include "list.h"
#include "map.h"
#include "timers.h"

/* With fibers ready all the time the kernel is still looked at after this many switches, or this long, or when a
 * deadline has come. */
enum { HD_SWITCHES_PER_POLL = 64, HD_SWITCHES_PER_CLOCK = 4 };
#define HD_NS_PER_POLL HD_NS_PER_MS

/* When fibers run for this long or longer, the clock is looked at after each: that costs a fortieth of it. */
#define HD_NS_PER_CLOCK INT64_C(1000)

typedef struct hd_reactor {
    const hd_backend_ops *ops;
    hd_backend *backend;
    hd_list ready;    /* waits whose fiber can run, first come first served */
    hd_list due;      /* those whose deadline has come, likewise: see hd_next_ready */
    bool due_was_last; /* who was taken last was one of these */
    bool ran;         /* one was taken since the last look at the kernel */
    uint64_t sequence; /* of waits that began, or became ready */
    hd_map waits;     /* fiber -> its wait: every parked or ready one (what the GC must mark) */
    hd_map chains;    /* root -> the wait of a fiber that it has resumed, which holds it up */
    hd_map *ios;      /* descriptor -> interests in it; shared by the schedulers of a Ractor */
    hd_timers timers; /* the deadlines of the waits */
    hd_timers limits; /* those of blocks in which fibers may wait, or compute */
    int64_t now_ns;    /* time of the last look at the clock */
    int64_t polled_ns; /* time of the last look at the kernel */
    unsigned switches; /* since that look */
    unsigned switches_by_clock; /* since the last look at the clock */
    unsigned switches_per_clock; /* how many of them there are between two such looks */
    size_t armed;      /* interests that the backend holds */
    size_t landed;     /* interests for which bytes were read that their fibers have not taken yet */
    unsigned generation; /* of forks: its waits are void under another one */
    int64_t asked_ns;  /* how long the last poll was allowed to wait */
    bool slept;        /* it kept us for a while */
    bool asleep;       /* the owner is in poll_nogvl and wants a wake; written with the GVL held */
    bool rests;        /* the same, whether it was woken or not: now_ns is from before */
    uint64_t polls, wakes; /* counters for reports */
    hd_histogram latency; /* see hd_reactor_reap */
} hd_reactor;

/* A poll that took longer than this has waited for something. */
#define HD_NS_SLEPT INT64_C(20000)

int hd_reactor_init(hd_reactor *reactor, hd_map *ios, unsigned generation);
int hd_reactor_open(hd_reactor *reactor, const hd_backend_ops *ops, bool pinned);

/* In place of open and close: with a backend that another reactor of this thread has had. Nothing is armed. */
void hd_reactor_attach(hd_reactor *reactor, const hd_backend_ops *ops, hd_backend *backend);
hd_backend *hd_reactor_detach(hd_reactor *reactor);

void hd_reactor_close(hd_reactor *reactor);
void hd_reactor_free(hd_reactor *reactor);

/* In the child of a fork: closes the backend and forgets every wait (their fibers never run here) without touching
 * one. */
void hd_reactor_forget(hd_reactor *reactor, unsigned generation);

/* Is it time to look at the kernel though fibers are ready? Counts one switch. */
bool hd_reactor_poll_due(hd_reactor *reactor);

static inline bool hd_reactor_has_ready(const hd_reactor *reactor)
{
    return !hd_list_empty(&reactor->ready) || !hd_list_empty(&reactor->due);
}

/* How long the kernel may keep us: 0 when something is ready, HD_NO_DEADLINE when no timer is set. */
int64_t hd_reactor_timeout(hd_reactor *reactor);

void hd_reactor_poll_nogvl(hd_reactor *reactor, int64_t timeout_ns);

/* Notes the latency of the loop, too, if fibers have run: how long what happened since the last look at the kernel has
 * waited, or how long one that is ready has; the longer of the two. */
void hd_reactor_reap(hd_reactor *reactor);

/* Fires the timers and the limits that are due, the earlier one first. */
void hd_reactor_fire(hd_reactor *reactor, int64_t now_ns);

/* Wakes the owner if it sleeps in the kernel. From another thread, with the GVL. */
void hd_reactor_wake_if_asleep(hd_reactor *reactor);
