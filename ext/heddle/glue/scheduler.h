/* The Ruby object Heddle::Scheduler and what the hooks share. */
#ifndef HEDDLE_SCHEDULER_H
#define HEDDLE_SCHEDULER_H

#include "../core/reactor.h"
#include "../os/backends.h"
#include "../os/worker.h"
#include "compat.h"

typedef struct hd_scheduler {
    hd_reactor reactor;
    hd_inbox inbox;
    const hd_backend_ops *ops; /* the backend that was chosen; opened at first use */
    VALUE self, thread;        /* the thread that runs it; nil until first use */
    VALUE home;                /* the fiber that runs the loop, or nil; see park.h */
    VALUE last_home;           /* home, or what it was last: where the child of a fork goes on */
    VALUE root;                /* the fiber that the loop last switched to; what runs is it or what it resumed */
    VALUE runner;              /* main thread: the fiber that has called run, for backtraces; or nil */
    VALUE raised;              /* what was fatal, while it is raised out of run; or nil */
    VALUE fatal;               /* an exception that must reach the thread (SystemExit, Interrupt), or nil */
    VALUE ended;               /* the fiber that is about to end, if its task has told so; or nil */
    VALUE sent;                /* WeakMap: what Thread#raise was given for the thread, or nil; see thread_calls.h */
    VALUE pending;             /* fiber -> exception to raise when it next parks, or nil */
    VALUE order;               /* the body of a fiber that home is to make for a handler, then that fiber; or nil */
    VALUE order_storage;       /* what Fiber#storage is to be in it */
    VALUE loop;                /* main thread: the fiber that turns the loop for home, or nil; see interrupts.h */
    hd_map timeouts;           /* root -> its timeouts, set or due and not yet raised; see hook_timeout.c */
    size_t expired;            /* how many of them are due */
    uint64_t expiries;         /* how many ever were */
    struct hd_mask_kind *mask_kinds; /* what the Thread.handle_interrupt blocks hold back; see interrupt_mask.c */
    size_t mask_kinds_count;
    size_t masks;              /* how many such blocks its fibers are in, also those that nobody asks any more */
    uint64_t mask_sequence;    /* and how many there ever were */
    VALUE quick;               /* the fiber whose blocking operation cannot take time, or nil; see quick.h */
    hd_node watch_node;        /* in the list of those that have had a timeout; see watch.c */
    struct hd_timed_sleep *timed_sleep; /* a Mutex#sleep that is about to call kernel_sleep, or NULL */
    struct hd_line *line;      /* who waits at the queue that was last asked for, or NULL; see hand_over.c */
    unsigned fork_generation;
    VALUE fiber_body;      /* the Proc that every scheduled fiber runs */
    int patience_ms;       /* how long the next poll that nothing can end may last; see deadlock.c */
    unsigned starts;       /* fibers started so far */
    unsigned parks;        /* how often a fiber has begun to wait */
    bool root_scheduled;   /* that root was started by this scheduler */
    bool starting;         /* a fiber is about to begin, for the first time */
    bool home_waits;       /* home is in its loop: switching to it is safe */
    bool check_interrupts; /* the thread has an interrupt for home to look at */
    bool interrupted;      /* a poll was ended by Ruby, not by the kernel */
    bool masks_ended;      /* no handle_interrupt block of a fiber holds anything back */
    bool closed;
    bool stopped; /* the home loop ends at its next step */
    uintptr_t *waits_first;  /* by descriptor, the IO and a bit a direction: the last transfer waited; see hook_io.c */
    int waits_first_count;
} hd_scheduler;

extern VALUE hd_mHeddle, hd_cScheduler, hd_eError;

/* How often this process has been forked off since the extension was loaded. */
extern unsigned hd_fork_generation;

/* Notices that this process is the child of a fork, and cleans the scheduler for it. */
void hd_scheduler_check_fork(hd_scheduler *scheduler);

/* The struct of a Heddle::Scheduler; after a fork, cleaned for the child. */
hd_scheduler *hd_scheduler_get(VALUE self);

/* As above, with the backend open: for everything that may park. Raises when the scheduler is closed. */
hd_scheduler *hd_scheduler_ready(VALUE self);

/* The Heddle scheduler of the current thread, whatever kind of fiber runs; or NULL. */
hd_scheduler *hd_scheduler_of_thread(void);

/* Called on another thread than the scheduler's? (copy_stream's worker calls io_wait there.) */
bool hd_scheduler_foreign(const hd_scheduler *scheduler);

/* Does its loop run, or does one of its own fibers (or one that such a fiber has resumed)? */
bool hd_scheduler_inside(const hd_scheduler *scheduler);

/* The IO table of this Ractor: descriptor -> interests of all its schedulers. */
hd_map *hd_io_table(void);

/* Does Ruby hide this object? It has no class: the Mutex of an autoload, or of a close. */
static inline bool hd_is_hidden(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && !RBASIC_CLASS(object);
}

/* A Proc for Fiber.new; the block that the fiber is to run is given when it is first switched to. */
VALUE hd_fiber_body(VALUE self);

void hd_init_scheduler(void);
void hd_init_hooks_fiber(void);
void hd_init_hooks_block(void);
void hd_init_hooks_io(void);
void hd_init_hooks_select(void);
void hd_init_hooks_close(void);
void hd_init_hooks_timeout(void);
void hd_init_hooks_process(void);
void hd_init_hooks_resolve(void);
void hd_init_name_lookup(void);
void hd_init_report(void);

#endif
