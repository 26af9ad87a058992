/* The wait record: one suspended operation of one fiber.
 *
 * Ground rules
 *  - A wait lives on the C stack of the fiber that waits; nothing is allocated for it.
 *  - hd_wait_begin links it, hd_wait_end unlinks it from everything. Whoever begins a wait ends it, also when
 *    an exception passes through (fibers/park.c calls hd_wait_end in any case).
 *  - It is woken at most once: hd_wait_settle takes it from PARKED to READY and into the ready queue. Whatever
 *    arrives later (a second unblock, a late timer, a late completion, a late close) finds it not PARKED and
 *    does nothing. A completion can never reach the fiber's next wait, for that is another record.
 *  - All of this runs with the GVL held. Nothing here makes a system call or knows Ruby: a fiber, an IO object
 *    and an exception are opaque words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reactor.h"

typedef uintptr_t hd_word;

typedef enum { HD_WAIT_NEW, HD_WAIT_PARKED, HD_WAIT_READY, HD_WAIT_DONE } hd_wait_state;

/* What the fiber waits for. Only BLOCK, THREAD and SLEEP may be ended by an unblock. */
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

/* Where a fiber that can run stands. */
typedef enum {
    HD_IN_LINE,  /* first come, first served: an event has woken it */
    HD_IN_FRONT, /* before all others */
    HD_YIELDS,   /* the same, but the first one of those behind runs before it, if it was there before */
    HD_BEHIND    /* behind all others, first come, first served: its turn was used up */
} hd_place;

typedef struct hd_wait {
    hd_reactor *reactor;
    hd_node ready_node;     /* in reactor->ready while READY */
    hd_map_node fiber_node; /* in reactor->waits from begin to end; its key is the fiber */
    hd_map_node root_node;  /* in reactor->chains from hd_wait_for_root to end; its key is the root */
    hd_timer timer;         /* set while PARKED with a deadline */
    hd_word exception;      /* valid when woken by an exception; marked by fibers/scheduler.c */
    hd_word subject;        /* what it waits on (IO, blocker), for reports; the fiber's stack keeps it alive */
    hd_word root;           /* the fiber that is held up by this: itself, or the one that has resumed it */
    struct hd_wait *below;  /* of home's chain: the one that was its last before, or NULL; see home.h */
    hd_word task;           /* what runs there; the fiber's stack keeps it alive */
    const hd_interest *interests; /* of an IO wait, for reports */
    size_t interests_count;
    int64_t since_ns;       /* the loop's time when it was parked */
    int64_t ready_ns;       /* READY: the loop's time when it became so, or a little earlier */
    uint64_t order;         /* in reactor->sequence: when it was parked; READY, and not for its deadline: since when */
    unsigned generation;    /* the reactor's when it began: a fork in between voids it */
    uint8_t state, kind, wake;
    uint8_t place;          /* an hd_place: where it is in the queue, or will be */
    bool scheduled;         /* that root was started by the scheduler: it is not the program's own */
} hd_wait;

static inline hd_word hd_wait_fiber(const hd_wait *wait)
{
    return wait->fiber_node.key;
}

/* Was the wait begun in the parent of a fork? Then the child's reactor knows nothing of it: it is linked nowhere. */
bool hd_wait_void(const hd_wait *wait);

/* Parks a wait. 0 or -ENOMEM. deadline_ns may be HD_NO_DEADLINE. */
int hd_wait_begin(hd_wait *wait, hd_reactor *reactor, hd_wait_kind kind, hd_word fiber, int64_t deadline_ns);

/* A wait that is ready at once. */
void hd_wait_begin_ready(hd_wait *wait, hd_reactor *reactor, hd_word fiber, hd_place place);

/* It holds up this fiber: its own, or the one that has resumed that. Once after the begin. */
void hd_wait_for_root(hd_wait *wait, hd_word root);

/* PARKED -> READY. False, and nothing done, if it was not parked. */
bool hd_wait_settle(hd_wait *wait, hd_wake wake);

/* An unblock takes the place of an exception or a timeout that the fiber has not heard of yet. *displaced is that
 * exception, to be raised later, or 0. False, and nothing done, if the wait is over by an event or an unblock. */
bool hd_wait_unblock_instead(hd_wait *wait, hd_word *displaced);

/* Who runs next, taken out of the queue, or NULL. THE ORDER:
 *  1. what became ready in front;
 *  2. those that an event has woken, and those that yield, first come, first served. (Whose deadline has come goes
 *     before those that have become ready since it was parked, so that it is on time however many there are. But such
 *     ones and others take turns: neither kind can keep the other from running.)
 *  3. those behind, first come, first served. They come before 2 when the others have had all the turns for
 *     HD_NS_PASSED_OVER; and one of them comes before a fiber that yields. */
hd_wait *hd_next_ready(hd_reactor *reactor);

/* When the first in the queue became ready, of those that did not in front; HD_NO_DEADLINE: there is none. */
int64_t hd_ready_since(const hd_reactor *reactor);

/* Unlinks the wait from the ready queue, the timers and the fiber table. Interests are disarmed separately. */
void hd_wait_end(hd_wait *wait);
