/* TIMERS in user space: an intrusive 4-ary heap, ordered by (deadline, sequence).
 *
 * Problem: nearly every wait may have a timeout, and few of these ever end it. Way: one heap, whose minimum is the
 * timeout of the loop's single wait. So a timeout costs no system call and no object. A 4-ary heap has half the
 * height of a binary one, and four children lie in two cache lines. The timers themselves lie on the stacks of their
 * fibers, and a look at one costs a cache miss. So the heap contains the deadlines, and an array beside it has the
 * places of the timers.
 *
 * Rejected: a timer of the kernel for each timeout. Price: the two arrays grow and shrink with the number of timers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hd_timer {
    int64_t deadline_ns;
    uint64_t sequence; /* equal deadlines fire in the order in which they were set */
    uint32_t slot;     /* index in the array of places + 1; 0 = not set */
    void (*fire)(struct hd_timer *timer);
} hd_timer;

typedef struct {
    int64_t deadline_ns;
    hd_timer *timer;
    uint32_t slot; /* the timer's slot */
} hd_timer_entry;

typedef struct {
    hd_timer_entry *heap;
    uint32_t *places; /* by slot: the index in the heap; in a free slot: the next free one, as timer->slot */
    uint32_t free;    /* the first free slot, as timer->slot; 0: all slots that were used are taken */
    size_t count, used, capacity; /* timers that are set; slots that were ever used; room of both arrays */
    uint64_t next_sequence;
} hd_timers;

void hd_timers_init(hd_timers *timers);
void hd_timers_free(hd_timers *timers);

/* The number of bytes of heap memory. */
static inline size_t hd_timers_memsize(const hd_timers *timers)
{
    return timers->capacity * (sizeof(*timers->heap) + sizeof(*timers->places));
}

static inline bool hd_timer_set(const hd_timer *timer)
{
    return timer->slot != 0;
}

/* Sets a timer that is not set. Returns 0 or -ENOMEM. */
int hd_timers_add(hd_timers *timers, hd_timer *timer, int64_t deadline_ns);
void hd_timers_remove(hd_timers *timers, hd_timer *timer);

/* The earliest deadline, or HD_NO_DEADLINE. */
int64_t hd_timers_next(const hd_timers *timers);

/* Fires the timer with the earliest deadline. At least one timer must be set. */
void hd_timers_fire_first(hd_timers *timers);
