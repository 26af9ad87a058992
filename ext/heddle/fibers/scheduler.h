/* The C struct of the Ruby object Heddle::Scheduler, and how hooks and patches get it. */
#pragma once

#include "core/interest.h"
#include "os/backends.h"
#include "os/fork.h"
#include "os/worker.h"
#include "ruby/compat.h"
#include "ruby/init.h"

/* A record of the things that were learned of an IO: see way.c. */
typedef struct {
    VALUE io; /* not marked: it is compared, and never used. 0: nothing is known of this descriptor */
    bool reads_wait, accepts_wait; /* the last such call had to wait */
    bool kind_is_known, is_pipe;
    bool never_blocks; /* it was not in blocking mode */
} hd_known_io;

typedef struct hd_scheduler {
    hd_reactor reactor;
    hd_inbox inbox;
    const hd_backend_ops *ops; /* the backend that was chosen; opened at first use */
    VALUE self, thread;        /* the thread that runs it; nil until first use */
    VALUE sent; /* WeakMap: the exceptions that Thread#raise was given for the thread, or nil; see thread_calls.h */
    bool closed;
    bool stacks_are_warm;      /* see warm_stacks.h */
    bool keeps_backend;        /* its thread keeps the backend for the next scheduler */
    void (*forget_parent)(struct hd_scheduler *scheduler); /* cleans the scheduler for the child of a fork */

    struct { /* the fibers that run now: see park.h */
        VALUE root;     /* the fiber that the loop last switched to; it runs, or a fiber that it has resumed */
        bool scheduled; /* this scheduler has started that root */
        VALUE task;     /* the Heddle::Task that the root runs, or in which it was started; or nil */
        unsigned parks; /* how often a fiber has begun to wait */
        bool has_waited_for_child; /* then each fiber keeps its own $?: see park.c */
    } running;

    struct { /* see watch.h; the watching thread changes what is marked as its own */
        hd_node node;
        bool on;
        bool rests;          /* no fiber runs. Atomic */
        unsigned run;        /* how often a fiber has begun to run. Atomic */
        unsigned over;       /* the run that has lasted for a slice. Atomic */
        unsigned refused;    /* how often a slice could not end where it was over. Atomic */
        int64_t slice_ns;    /* the length of a time slice, or 0; see hooks/time_slice.c */
        int64_t stall_ns;    /* how long a fiber may run before it is reported, or 0; see stalls.h */
        int64_t since_ns;    /* for stalls: when the running fiber has begun; 0: none runs. Atomic */
        int64_t ordered_ns;  /* its own: the last start for which a report was ordered */
        unsigned seen, seen_refused; /* its own: the counters at its last look */
        int64_t seen_ns;     /* its own: when it has seen this run first */
        int64_t pause_ns;    /* its own: the last pause between two tries to end a slice */
    } watch;

    struct { /* see loop.h */
        int patience_ms;       /* how long the next poll that nothing can end may last; see deadlock.c */
        bool patience_is_over; /* it has lasted that long: home must look for a deadlock */
        bool check_interrupts; /* the thread has an interrupt that home must look at */
        bool interrupted;      /* a poll was ended by Ruby, not by the kernel */
        bool called;           /* another thread has left tasks to be started: see hd_loop_call */
    } loop;

    struct { /* see virtual_clock.h */
        bool on;
        bool as_machine; /* it goes on while the loop sleeps */
        VALUE owner;     /* the object that is asked for what the fibers wait; or nil */
        int64_t threshold_ns;
        int64_t asleep_ns; /* the machine's time when the loop fell asleep */
        int64_t silent_ns; /* how long the loop has slept since a fiber ran last */
        uint64_t taken;    /* reactor.rounds.taken then */
        size_t idlers;     /* the fibers that wait until all others wait, too */
    } virtual_clock;

    struct { /* see home.h */
        VALUE fiber;   /* the caller of Heddle.run or of Scheduler#run while that lasts, or nil */
        VALUE outside; /* the fiber that has set the scheduler; or nil */
        VALUE last;    /* home.fiber, but it stays after a run: the child of a fork goes on there */
        hd_wait *top;  /* the last wait of home, or of a fiber that home has resumed or entered; or NULL */
        VALUE maker;   /* a fiber in which no handler runs, see new_fiber.h; or nil */
        VALUE fatal;   /* an exception that must reach the thread (SystemExit, Interrupt), or nil */
        bool waits;    /* home turns the loop: switching to it is safe */
        bool in_root_chain; /* control comes to home when a fiber ends, unless home has resumed another one */
        bool stopped;  /* the loop ends at its next step */
    } home;

    struct { /* see scheduled_fiber.h */
        VALUE body;     /* the Proc that every scheduled fiber runs; nil before the first one */
        VALUE ended;    /* the fiber that is about to end, if its task has recorded its end; or nil */
        uint64_t count; /* fibers started so far */
        bool starting;  /* a new fiber is about to begin */
    } fibers;

    struct { /* see stats.h */
        uint64_t closes;  /* IOs that were closed in its fibers */
        uint64_t cancels; /* cancels that were sent to its fibers */
    } counted;

    struct { /* see pending.h */
        hd_map by_fiber;
        hd_list exceptions;  /* the pending exceptions that are heap memory */
        size_t due, timeouts_due;
        uint64_t sequence;   /* how many have ever become due */
    } pending;

    struct { /* what the Thread.handle_interrupt blocks hold back: see interrupt_mask.c */
        struct hd_mask_kind *kinds;
        size_t kinds_count;
        size_t blocks;     /* how many such blocks its fibers are in, with those of abandoned fibers */
        uint64_t sequence; /* how many such blocks have ever begun */
        bool ended;        /* the scheduler ends, so no block holds anything back */
    } masks;

    struct { /* see frame.h */
        VALUE fiber; /* the fiber whose frames these are, or nil */
        struct hd_frame *innermost;
        size_t kept_by_fibers; /* how many fibers hold their frames themselves */
    } frames;

    struct { /* what is known of the IOs, by their descriptors */
        hd_known_io *by_descriptor;
        int count;
    } known;

    struct { /* see way.c */
        uint64_t tried_at; /* reactor->polls when a write was last tried */
        bool peers_are_here;
        unsigned lone_writes_direct; /* the number of lone writes that will be made directly */
    } way;

    struct { /* see lock_cycles.h */
        bool wanted;       /* a fiber waits for a lock, or did so at the last look */
        bool limited;      /* the last look has left out a wait that has a limit */
        bool changed;      /* since the last look a wait has begun, or lost its limit, that may close a circle */
        int64_t looked_ns;
    } locks;

    char *read_memory;    /* where bytes arrive that are read directly, or NULL; see hd_read_memory */
    hd_node overdue_node; /* in the list of the schedulers that have had a timeout; see overdue.c */
    struct hd_hand_over *hand_over; /* of a lock, by the fiber that runs now; or NULL: see unblock_relay.c */
    struct hd_line *line; /* the fibers that wait at the queue that was last asked for, or NULL; see unblock_relay.c */
} hd_scheduler;

extern VALUE hd_cScheduler;

/* Notices that this process is the child of a fork, and cleans the scheduler for it. */
void hd_scheduler_check_fork(hd_scheduler *scheduler);

/* The struct of a Heddle::Scheduler; after a fork, cleaned for the child. */
hd_scheduler *hd_scheduler_get(VALUE self);

/* Returns this struct with the backend open, for everything that may park. Raises when the scheduler is closed. */
hd_scheduler *hd_scheduler_ready(VALUE self);

/* The Heddle scheduler of the current thread, whatever kind of fiber runs; or NULL. */
hd_scheduler *hd_scheduler_of_thread(void);

/* The Heddle scheduler of the current fiber; NULL also in a blocking fiber. */
hd_scheduler *hd_scheduler_here(void);

/* Is the current thread another one than the scheduler's? The worker of copy_stream calls io_wait so. */
bool hd_scheduler_foreign(const hd_scheduler *scheduler);

/* Has the scheduler a loop, and is this its thread? The child of a fork has no loop. */
bool hd_scheduler_turns_here(const hd_scheduler *scheduler);

/* Closes its backend, or leaves it to the thread. */
void hd_scheduler_close_backend(hd_scheduler *scheduler);

/* Does its loop run, or one of its own fibers, or a fiber that such a fiber has resumed? */
bool hd_scheduler_inside(const hd_scheduler *scheduler);

/* Returns the time of its clock. Any thread of the Ractor may ask. */
static inline int64_t hd_scheduler_now(const hd_scheduler *scheduler)
{
    return scheduler->virtual_clock.on ? scheduler->reactor.now_ns : hd_clock_now();
}

/* The IO table of this Ractor: descriptor -> interests of all its schedulers. */
hd_map *hd_io_table(void);

/* The type of the objects; see scheduler_class.c. */
extern const rb_data_type_t hd_scheduler_type;

/* Returns the scheduler that runs in a thread, or NULL. The second function records which scheduler runs in a thread
 * from now on; NULL: it has ended. */
hd_scheduler *hd_scheduler_in(VALUE thread);
void hd_scheduler_runs(hd_scheduler *scheduler, bool runs);

/* Does the main Ractor call this? */
bool hd_in_main_ractor(void);

/* Do threads of this Ractor stay with their native threads? */
bool hd_threads_are_pinned(void);
