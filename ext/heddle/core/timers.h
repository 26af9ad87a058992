/* Timers in user space: an intrusive 4-ary heap ordered by (deadline, sequence). Its minimum feeds the single
 * wait of the loop, so a timeout costs no system call and no object. 4-ary: half the height of a binary heap
 * and four children in one cache line. The heap has the deadlines itself: the timers lie on the stacks of their
 * fibers, and to look at one costs a miss of the cache. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hd_timer {
    int64_t deadline_ns;
    uint64_t sequence; /* equal deadlines fire in the order in which they were set */
    size_t position;   /* index in the heap + 1; 0 = not set */
    void (*fire)(struct hd_timer *timer);
} hd_timer;

typedef struct {
    int64_t deadline_ns;
    hd_timer *timer;
} hd_timer_entry;

typedef struct {
    hd_timer_entry *heap;
    size_t count, capacity;
    uint64_t next_sequence;
} hd_timers;

void hd_timers_init(hd_timers *timers);
void hd_timers_free(hd_timers *timers);

static inline bool hd_timer_set(const hd_timer *timer)
{
    return timer->position != 0;
}

/* 0 or -ENOMEM. The timer must not be set. */
int hd_timers_add(hd_timers *timers, hd_timer *timer, int64_t deadline_ns);
void hd_timers_remove(hd_timers *timers, hd_timer *timer);

/* The earliest deadline, or HD_NO_DEADLINE. */
int64_t hd_timers_next(const hd_timers *timers);

/* Fires the timer with the earliest deadline, which there must be. */
void hd_timers_fire_first(hd_timers *timers);
