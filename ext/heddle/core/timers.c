/* The timer heap of timers.h. */
#include "timers.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "clock.h"

enum { ARITY = 4, INITIAL_CAPACITY = 64 };

void hd_timers_init(hd_timers *timers)
{
    *timers = (hd_timers){0};
}

void hd_timers_free(hd_timers *timers)
{
    free(timers->heap);
    free(timers->places);
    hd_timers_init(timers);
}

static inline bool earlier(const hd_timer_entry *a, const hd_timer_entry *b)
{
    if (a->deadline_ns != b->deadline_ns) return a->deadline_ns < b->deadline_ns;
    return a->timer->sequence < b->timer->sequence;
}

static inline void place(hd_timers *timers, size_t index, hd_timer_entry entry)
{
    timers->heap[index] = entry;
    timers->places[entry.slot - 1] = (uint32_t)index;
}

static void sift_up(hd_timers *timers, size_t index, hd_timer_entry entry)
{
    while (index > 0) {
        size_t parent = (index - 1) / ARITY;
        if (!earlier(&entry, &timers->heap[parent])) break;
        place(timers, index, timers->heap[parent]);
        index = parent;
    }
    place(timers, index, entry);
}

static void sift_down(hd_timers *timers, size_t index, hd_timer_entry entry)
{
    for (;;) {
        size_t first = index * ARITY + 1, best = first;
        if (first >= timers->count) break;
        for (size_t child = first + 1; child < first + ARITY && child < timers->count; child++)
            if (earlier(&timers->heap[child], &timers->heap[best])) best = child;
        if (!earlier(&timers->heap[best], &entry)) break;
        place(timers, index, timers->heap[best]);
        index = best;
    }
    place(timers, index, entry);
}

static int reserve(hd_timers *timers)
{
    size_t capacity = timers->capacity ? timers->capacity * 2 : INITIAL_CAPACITY;
    if (capacity > UINT32_MAX) return -ENOMEM;
    hd_timer_entry *heap = realloc(timers->heap, capacity * sizeof(*heap));
    if (heap) timers->heap = heap;
    uint32_t *places = heap ? realloc(timers->places, capacity * sizeof(*places)) : NULL;
    if (!places) return -ENOMEM;
    timers->places = places;
    timers->capacity = capacity;
    return 0;
}

/* Makes the memory follow its use: the memory of a million timers does not stay with the process after a burst. All
 * timers get new slots, at the beginning of the array. */
static void shrink(hd_timers *timers)
{
    size_t capacity = timers->capacity / 2;
    for (size_t i = 0; i < timers->count; i++) {
        hd_timer_entry *entry = &timers->heap[i];
        entry->slot = entry->timer->slot = (uint32_t)i + 1;
        timers->places[i] = (uint32_t)i;
    }
    timers->free = 0;
    timers->used = timers->count;
    hd_timer_entry *heap = realloc(timers->heap, capacity * sizeof(*heap));
    if (heap) timers->heap = heap;
    uint32_t *places = realloc(timers->places, capacity * sizeof(*places));
    if (places) timers->places = places;
    timers->capacity = capacity;
}

static uint32_t take_slot(hd_timers *timers)
{
    uint32_t slot = timers->free;
    if (!slot) return (uint32_t)++timers->used;
    timers->free = timers->places[slot - 1];
    return slot;
}

int hd_timers_add(hd_timers *timers, hd_timer *timer, int64_t deadline_ns)
{
    HD_ASSERT(!hd_timer_set(timer));
    if (timers->count == timers->capacity) {
        int error = reserve(timers);
        if (error) return error;
    }
    timer->deadline_ns = deadline_ns;
    timer->sequence = timers->next_sequence++;
    timer->slot = take_slot(timers);
    sift_up(timers, timers->count++, (hd_timer_entry){deadline_ns, timer, timer->slot});
    return 0;
}

void hd_timers_remove(hd_timers *timers, hd_timer *timer)
{
    HD_ASSERT(hd_timer_set(timer) && timer->slot <= timers->used);
    size_t index = timers->places[timer->slot - 1];
    HD_ASSERT(index < timers->count && timers->heap[index].timer == timer);
    timers->places[timer->slot - 1] = timers->free;
    timers->free = timer->slot;
    timer->slot = 0;
    hd_timer_entry last = timers->heap[--timers->count];
    if (last.timer != timer) {
        if (index > 0 && earlier(&last, &timers->heap[(index - 1) / ARITY]))
            sift_up(timers, index, last);
        else
            sift_down(timers, index, last);
    }
    if (timers->capacity > INITIAL_CAPACITY && timers->count < timers->capacity / 8) shrink(timers);
}

int64_t hd_timers_next(const hd_timers *timers)
{
    return timers->count ? timers->heap[0].deadline_ns : HD_NO_DEADLINE;
}

void hd_timers_fire_first(hd_timers *timers)
{
    hd_timer *timer = timers->heap[0].timer;
    hd_timers_remove(timers, timer);
    timer->fire(timer);
}
