/* The reactor: what a loop has (the ready queue, the waits, the timers, a backend) and the steps of its turn. Start
 * reading in fibers/loop.c, which takes them.
 *
 * One reactor belongs to one scheduler, thus to one thread. Every function but hd_reactor_poll_nogvl runs with the GVL
 * held. So other threads of the same Ractor may settle waits of this reactor, too.
 *
 * Each turn of the loop takes the next fiber. It looks at the kernel first when hd_reactor_poll_due() says so, or when
 * no fiber is ready:
 *           timeout = hd_reactor_timeout()          how long the kernel may keep us
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

/* While fibers are ready all the time, the kernel is still looked at: after this number of switches, after this
 * time, or when a deadline has come. */
enum { HD_SWITCHES_PER_POLL = 128, HD_SWITCHES_PER_CLOCK = 4 };
#define HD_NS_PER_POLL HD_NS_PER_MS

/* When fibers run for this long or longer, the loop looks at the clock after each. Such a look costs a fortieth of
 * this time. */
#define HD_NS_PER_CLOCK INT64_C(1000)

/* A turn ends after this time. When many fibers stand behind others, it is shorter, so that each of them has its
 * next turn after HD_NS_PER_ROUND; but it is never shorter than a switch is worth. */
#define HD_NS_PER_TURN HD_NS_PER_MS
#define HD_NS_PER_ROUND (20 * HD_NS_PER_MS)
#define HD_NS_PER_TURN_AT_LEAST INT64_C(50000)

/* A fiber that stands behind others comes next when these have had all turns for this time. */
#define HD_NS_PASSED_OVER (4 * HD_NS_PER_TURN)

/* The first operation of a turn does not look at the clock: nearly all turns have only one operation. When operations
 * are this short, every fourth one looks. */
enum { HD_FIRST_LOOK = 2, HD_OPERATIONS_PER_CLOCK = 4 };
#define HD_NS_PER_SHORT_OPERATION INT64_C(10000)

/* Under a virtual clock, which stands still while fibers run, a turn ends after this number of operations. */
enum { HD_OPERATIONS_PER_VIRTUAL_TURN = 64 };

typedef struct hd_reactor {
    const hd_backend_ops *ops;
    hd_backend *backend;
    hd_list ready;    /* waits whose fiber can run, first come first served */
    hd_list due;      /* waits whose deadline has come, first come first served: see hd_next_ready */
    /* waits that let others run first, in order: their turn was used up, or they have yielded */
    hd_list behind;
    size_t behind_count;
    int64_t behind_ns; /* since when the others have had all turns: one behind has stopped, or the first one came */
    bool behind_was_last; /* the fiber that was taken last was one of those behind */
    bool due_was_last; /* the fiber that was taken last was a due one */
    bool ran;         /* a fiber was taken since the last look at the kernel */
    bool shares;      /* small reads and writes are requests, which share system calls: see io/way.h */
    int64_t long_turn_ns; /* turns of this length or more are long: a request would wait for them until the next look */
    bool long_turns;  /* the turns between the last two looks were as long, on average */
    unsigned turns;   /* since the last look */
    bool writes;      /* shared writes wait for the next look at the kernel: it comes when all woken fibers have run */
    uint64_t reaped_at; /* the sequence at the end of the last look: who is ready with a lower order was woken by it */
    struct { /* in this struct a look is one at the clock */
        int64_t began_ns;    /* when the turn of the running fiber began; HD_NO_DEADLINE: it begins at the next look */
        int64_t looked_ns;   /* when its operations last looked at the clock */
        unsigned operations; /* the number of operations that it has made */
        unsigned looked_at, next_look; /* their number at that look, and at the next one */
        bool extended;               /* it was used up when a write began; that write was still made */
    } turn;
    struct { /* see hd_reactor_shuffle */
        bool on;
        uint64_t random; /* the state of the generator */
        size_t left;     /* the number of waits that are still left of the round */
        uint64_t taken;  /* the number of fibers that were taken */
    } rounds;
    uint64_t sequence; /* counts the waits that began, or became ready */
    hd_map waits;     /* fiber -> its wait: every parked or ready one (the GC must mark them) */
    hd_map chains;    /* root -> the wait of a fiber that it has resumed, which holds it up */
    hd_map *ios;      /* descriptor -> interests in it; shared by the schedulers of a Ractor */
    hd_timers timers; /* the deadlines of the waits */
    hd_timers limits; /* the deadlines of blocks in which fibers may wait, or compute */
    int64_t now_ns;    /* time of the last look at the clock */
    int64_t polled_ns; /* time of the last look at the kernel */
    unsigned switches; /* since that look */
    unsigned switches_by_clock; /* since the last look at the clock */
    unsigned switches_per_clock; /* the number of switches between two such looks */
    size_t armed;      /* interests that the backend holds */
    uint64_t answers;  /* counts the answers of the backend */
    size_t received;   /* interests for which bytes were read that their fibers have not taken yet */
    unsigned generation; /* the generation of the process: under another one its waits are void */
    int64_t asked_ns;  /* how long the last poll was allowed to wait */
    bool slept;        /* it has waited for a while */
    bool asleep;       /* the owner is in poll_nogvl, and nobody has woken it so far; written with the GVL held */
    bool rests;        /* the owner is in poll_nogvl, also after it was woken: now_ns is the time before that poll */
    uint64_t polls, wakes; /* counters for reports */
    hd_histogram latency; /* see hd_reactor_reap */
} hd_reactor;

/* A poll that took longer than this has waited for something. */
#define HD_NS_SLEPT INT64_C(20000)

int hd_reactor_init(hd_reactor *reactor, hd_map *ios, unsigned generation);
int hd_reactor_open(hd_reactor *reactor, const hd_backend_ops *ops, bool pinned);

/* Makes a reactor with a backend that another reactor of this thread has had. It takes the place of open and close.
 * Nothing is armed. */
void hd_reactor_attach(hd_reactor *reactor, const hd_backend_ops *ops, hd_backend *backend);
hd_backend *hd_reactor_detach(hd_reactor *reactor);

void hd_reactor_close(hd_reactor *reactor);
void hd_reactor_free(hd_reactor *reactor);

/* Closes the backend and forgets every wait without touching one. Called in the child of a fork, where their fibers
 * never run. */
void hd_reactor_forget(hd_reactor *reactor, unsigned generation);

/* Makes the order of the ready fibers one that the seed decides, for tests: see hd_next_ready. */
void hd_reactor_shuffle(hd_reactor *reactor, uint64_t seed);

/* Sets the reactor's time and fires the timers that are due then. For a virtual clock. */
void hd_reactor_jump(hd_reactor *reactor, int64_t now_ns);

/* Is it time to look at the kernel though fibers are ready? Counts one switch. */
bool hd_reactor_poll_due(hd_reactor *reactor);

static inline bool hd_reactor_has_ready(const hd_reactor *reactor)
{
    return !hd_list_empty(&reactor->ready) || !hd_list_empty(&reactor->due) || !hd_list_empty(&reactor->behind);
}

/* Counts an operation that may succeed without waiting. Is it time to look at the clock? */
static inline bool hd_reactor_count_operation(hd_reactor *reactor)
{
    return ++reactor->turn.operations >= reactor->turn.next_look;
}

/* Looks at the clock. True: the turn is used up, and there is a reason for the fiber to stop. Either others are
 * ready, or a look at the kernel is due: the last one was HD_NS_PER_POLL ago, or a deadline has come. */
bool hd_reactor_turn_is_over(hd_reactor *reactor);

/* Begins a turn. */
void hd_reactor_begin_turn(hd_reactor *reactor);

/* Begins a turn at the next look at the clock, because another fiber has just run in between, and its time does not
 * count. */
void hd_reactor_begin_turn_later(hd_reactor *reactor);

/* Returns how long the kernel may wait: 0 when something is ready, HD_NO_DEADLINE when no timer is set. */
int64_t hd_reactor_timeout(hd_reactor *reactor);

void hd_reactor_poll_nogvl(hd_reactor *reactor, int64_t timeout_ns);

/* Moves the completions that the poll has found, and the timers that are due, to the ready queue. If fibers have
 * run, it also notes the latency of the loop. This is the longer of two times: how long an event may have waited
 * since the last look at the kernel, and how long a ready fiber has waited. */
void hd_reactor_reap(hd_reactor *reactor);

/* Fires the timers and the limits that are due, the earlier one first. */
void hd_reactor_fire(hd_reactor *reactor, int64_t now_ns);

/* Wakes the owner if it sleeps in the kernel. From another thread, with the GVL. */
void hd_reactor_wake_if_asleep(hd_reactor *reactor);
