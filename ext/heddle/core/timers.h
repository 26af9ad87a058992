/* Timers in user space: an intrusive 4-ary heap ordered by (deadline, sequence). Its minimum feeds the single
 * wait of the loop, so a timeout costs no system call and no object. 4-ary: half the height of a binary heap
 * and four children in two cache lines. The timers lie on the stacks of their fibers, and to look at one costs a miss
 * of the cache. So the heap has the deadlines itself, and an array beside it has the places of the timers. */
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
    uint32_t slot; /* the timer's */
} hd_timer_entry;

typedef struct {
    hd_timer_entry *heap;
    uint32_t *places; /* by slot: the index in the heap; of a free slot: the next free one, as timer->slot */
    uint32_t free;    /* the first free slot, as timer->slot; 0: all that were used are taken */
    size_t count, used, capacity; /* timers that are set; slots that were ever used; of both arrays */
    uint64_t next_sequence;
} hd_timers;

void hd_timers_init(hd_timers *timers);
void hd_timers_free(hd_timers *timers);

/* Bytes of heap memory. */
static inline size_t hd_timers_memsize(const hd_timers *timers)
{
    return timers->capacity * (sizeof(*timers->heap) + sizeof(*timers->places));
}

static inline bool hd_timer_set(const hd_timer *timer)
{
    return timer->slot != 0;
}

/* 0 or -ENOMEM. The timer must not be set. */
int hd_timers_add(hd_timers *timers, hd_timer *timer, int64_t deadline_ns);
void hd_timers_remove(hd_timers *timers, hd_timer *timer);

/* The earliest deadline, or HD_NO_DEADLINE. */
int64_t hd_timers_next(const hd_timers *timers);

/* Fires the timer with the earliest deadline, which there must be. */
void hd_timers_fire_first(hd_timers *timers);
