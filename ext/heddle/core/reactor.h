/* The reactor: what a loop has (the ready queue, the waits, the timers, a backend) and the steps of its turn. Start
 * reading in fibers/loop.c, which takes them.
 *
 * One reactor belongs to one scheduler, thus to one thread. Every function but hd_reactor_poll_nogvl runs with the GVL
 * held; other threads of the same Ractor may then settle waits too.
 *
 * A turn:   timeout = hd_reactor_timeout()          how long the kernel may keep us
 *           hd_reactor_poll_nogvl(timeout)          the only step without the GVL: one system call
 *           hd_reactor_reap()                       completions and due timers fill the ready queue
 *           hd_next_ready() ... switch to it        fibers/loop.c runs the fibers
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

/* A turn ends after so long. When many wait behind others, it is shorter, so that each of them has its next turn after
 * HD_NS_PER_ROUND; but never shorter than a switch is worth. */
#define HD_NS_PER_TURN HD_NS_PER_MS
#define HD_NS_PER_ROUND (20 * HD_NS_PER_MS)
#define HD_NS_PER_TURN_AT_LEAST INT64_C(50000)

/* Who waits behind others comes next when these have had all the turns for so long (its own turn included). */
#define HD_NS_PASSED_OVER (4 * HD_NS_PER_TURN)

/* The first operation of a turn does not look at the clock: nearly all turns have one. When operations are this short,
 * every fourth does. */
enum { HD_FIRST_LOOK = 2, HD_OPERATIONS_PER_CLOCK = 4 };
#define HD_NS_PER_SHORT_OPERATION INT64_C(10000)

typedef struct hd_reactor {
    const hd_backend_ops *ops;
    hd_backend *backend;
    hd_list ready;    /* waits whose fiber can run, first come first served */
    hd_list due;      /* those whose deadline has come, likewise: see hd_next_ready */
    hd_list behind;   /* those that let the others run first, likewise: their turn was used up, or they have yielded */
    size_t behind_count;
    int64_t behind_ns; /* when one of these was taken last, or the first of them came */
    bool due_was_last; /* who was taken last was one of these */
    bool ran;         /* one was taken since the last look at the kernel */
    struct {
        int64_t began_ns;    /* the turn of the fiber that runs; HD_NO_DEADLINE: with the next look */
        int64_t looked_ns;   /* when its operations last looked at the clock */
        unsigned operations; /* that it has made */
        unsigned looked_at, next_look; /* how many there were at that look, and will be at the next one */
        bool extended;               /* it was used up when a write began, which was still made */
    } turn;
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
    return !hd_list_empty(&reactor->ready) || !hd_list_empty(&reactor->due) || !hd_list_empty(&reactor->behind);
}

/* An operation that may succeed without waiting begins. Is it time to look at the clock? */
static inline bool hd_reactor_count_operation(hd_reactor *reactor)
{
    return ++reactor->turn.operations >= reactor->turn.next_look;
}

/* Looks at the clock: is the turn used up, and is there anything for which the fiber should stop? Others are ready, or
 * the kernel was not looked at for so long; then that is due. */
bool hd_reactor_turn_is_over(hd_reactor *reactor);

/* A turn begins. */
void hd_reactor_begin_turn(hd_reactor *reactor);

/* The same at the next look at the clock: another fiber has just run in between, and its time does not count. */
void hd_reactor_begin_turn_later(hd_reactor *reactor);

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
