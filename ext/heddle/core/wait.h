/* WAITS: the record of one suspended operation of one fiber.
 *
 * Problem: a fiber must be woken exactly once, though an unblock, a timer, a completion and a close may all come for
 * it, and each may be late. Way: each operation has a record of its own:
 *
 *  - A wait lives on the C stack of the fiber that waits; nothing is allocated for it.
 *  - hd_wait_begin links it, hd_wait_end unlinks it from everything. The function that begins a wait also ends it
 *    when an exception passes through (fibers/park.c calls hd_wait_end in any case).
 *  - It is woken at most once: hd_wait_settle takes it from PARKED to READY and into the ready queue. An event that
 *    arrives later (a second unblock, a late timer, a late completion, a late close) finds it not PARKED, and does
 *    nothing. A completion can never reach the fiber's next wait, because that is another record.
 *  - All of this runs with the GVL held. Nothing here makes a system call or knows Ruby: a fiber, an IO object and
 *    an exception are opaque words.
 *
 * Price: the record must be unlinked before its stack goes away, and is void in the child of a fork. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reactor.h"

typedef uintptr_t hd_word;

typedef enum { HD_WAIT_NEW, HD_WAIT_PARKED, HD_WAIT_READY, HD_WAIT_DONE } hd_wait_state;

/* The operation for which the fiber waits. Only BLOCK, THREAD and SLEEP may be ended by an unblock. */
typedef enum {
    HD_WAIT_FOR_BLOCK,
    HD_WAIT_FOR_THREAD, /* Thread#join: only an unblock by a thread ends it */
    HD_WAIT_FOR_SLEEP,
    HD_WAIT_FOR_IO,
    HD_WAIT_FOR_SELECT,
    HD_WAIT_FOR_PROCESS,
    HD_WAIT_FOR_WORKER,
    HD_WAIT_YIELDED /* ready from the start: the fiber only lets others run */
} hd_wait_kind;

typedef enum {
    HD_WOKEN_NOT,
    HD_WOKEN_BY_EVENT,
    HD_WOKEN_BY_TIMEOUT,
    HD_WOKEN_BY_UNBLOCK,
    HD_WOKEN_BY_EXCEPTION
} hd_wake;

/* The place in the queue of a fiber that can run. */
typedef enum {
    HD_IN_LINE,  /* first come, first served: an event has woken it */
    HD_IN_FRONT, /* before all others */
    HD_YIELDS,   /* in line, but the first one of those behind runs before it, if it was there before */
    HD_BEHIND    /* behind all others, first come, first served: its turn was used up */
} hd_place;

typedef struct hd_wait {
    hd_reactor *reactor;
    hd_node ready_node;     /* in one of reactor->ready, due and behind while READY */
    hd_map_node fiber_node; /* in reactor->waits from begin to end; its key is the fiber */
    hd_map_node root_node;  /* in reactor->chains from hd_wait_for_root to end; its key is the root */
    hd_timer timer;         /* set while PARKED with a deadline */
    hd_word exception;      /* valid when an exception has woken it; marked by fibers/scheduler.c */
    hd_word subject; /* the object that it waits on (IO, blocker), for reports; the fiber's stack keeps it alive */
    hd_word root; /* the fiber that is held up by this wait: its own fiber, or the fiber that has resumed that one */
    struct hd_wait *below;  /* in home's chain: the last wait before this one, or NULL; see home.h */
    hd_word task;           /* the task that runs there; the fiber's stack keeps it alive */
    const hd_interest *interests; /* of an IO wait, for reports */
    size_t interests_count;
    int64_t since_ns;       /* the loop's time when the fiber was parked */
    int64_t ready_ns;       /* READY: the loop's time when it became ready, or a little earlier */
    /* from reactor->sequence: when it was parked; or, if it is READY but not for its deadline, when it became so */
    uint64_t order;
    unsigned generation;    /* the reactor's generation at its beginning: a fork in between voids it */
    uint8_t state, kind, wake;
    uint8_t place;          /* an hd_place: where it is in the queue, or will be */
    bool sliced;            /* YIELDED, because a time slice is over: the fiber still counts as computing */
    bool scheduled;         /* the scheduler has started that root: it is not one of the program's own fibers */
} hd_wait;

static inline hd_word hd_wait_fiber(const hd_wait *wait)
{
    return wait->fiber_node.key;
}

/* Was the wait begun in the parent of a fork? Then it is linked nowhere in the child's reactor. */
bool hd_wait_void(const hd_wait *wait);

/* Begins a wait that is parked. Returns 0 or -ENOMEM. deadline_ns may be HD_NO_DEADLINE. */
int hd_wait_begin(hd_wait *wait, hd_reactor *reactor, hd_wait_kind kind, hd_word fiber, int64_t deadline_ns);

/* Begins a wait that is ready at once. */
void hd_wait_begin_ready(hd_wait *wait, hd_reactor *reactor, hd_word fiber, hd_place place);

/* Notes that the wait holds up this fiber: its own, or the fiber that has resumed that one. Called once after the
 * begin. */
void hd_wait_for_root(hd_wait *wait, hd_word root);

/* Takes a wait from PARKED to READY. Returns false, and does nothing, if it was not parked. */
bool hd_wait_settle(hd_wait *wait, hd_wake wake);

/* Lets a wait count as ended by an unblock that was ended by an exception or a timeout of which its fiber does not know
 * yet. *displaced is that exception, which must be raised later, or 0. Returns false, and does nothing, if an event or
 * an unblock has ended the wait. */
bool hd_wait_unblock_instead(hd_wait *wait, hd_word *displaced);

/* Takes the wait of the fiber that runs next out of the queue, or returns NULL. THE ORDER:
 *  1. fibers that became ready in front;
 *  2. fibers that an event has woken, and fibers that yield, first come, first served. A fiber whose deadline has come
 *     goes before fibers that have become ready since it was parked, so it is on time however many there are. But
 *     fibers of both kinds take turns, so neither kind can keep the other from running.
 *  3. fibers behind, first come, first served. They come before 2 when the others have had all the turns for
 *     HD_NS_PASSED_OVER; and one of them comes before a fiber that yields.
 * After hd_reactor_shuffle the order is another one, after 1: all fibers that are ready now form a round, in a random
 * order, and the fibers that become ready meanwhile form the next round. */
hd_wait *hd_next_ready(hd_reactor *reactor);

/* Takes a ready wait out of the queue at once: its fiber goes on now, before all others. */
void hd_wait_go_on(hd_wait *wait);

/* Returns when the first fiber of one of the three lists became ready, whichever was first. A list whose first fiber
 * stands in front does not count. HD_NO_DEADLINE: the lists are empty. */
int64_t hd_ready_since(const hd_reactor *reactor);

/* Unlinks the wait from the ready queue, the timers and the fiber table. Interests are disarmed separately. */
void hd_wait_end(hd_wait *wait);
