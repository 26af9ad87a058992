/* See virtual_clock.h. */
#include "virtual_clock.h"

/* When it begins: a round number, so that the deadlines of a program are the same in each run. */
#define BEGIN_NS (1000 * HD_NS_PER_SECOND)

void hd_virtual_clock_begin(hd_scheduler *scheduler, VALUE owner, int64_t threshold_ns)
{
    scheduler->virtual_clock.on = true;
    scheduler->virtual_clock.owner = owner;
    scheduler->virtual_clock.threshold_ns = threshold_ns;
    hd_clock_own(BEGIN_NS);
    hd_reactor_jump(&scheduler->reactor, BEGIN_NS);
    hd_reactor_begin_turn(&scheduler->reactor);
}

void hd_virtual_clock_end(hd_scheduler *scheduler)
{
    if (!scheduler->virtual_clock.on) return;
    scheduler->virtual_clock.on = false;
    hd_clock_own(0);
}

typedef struct {
    bool real; /* a fiber waits for a child process, a thread or a worker */
    VALUE ios; /* the IOs for which fibers wait */
} awaited;

static void look_at(hd_map_node *node, void *pointer)
{
    const hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    awaited *found = pointer;
    found->real |= wait->kind == HD_WAIT_FOR_PROCESS || wait->kind == HD_WAIT_FOR_THREAD ||
                   wait->kind == HD_WAIT_FOR_WORKER;
    for (size_t i = 0; i < wait->interests_count && !found->real; i++)
        rb_ary_push(found->ios, (VALUE)wait->interests[i].io);
}

/* Without IO and without other threads, the fibers wait for each other. */
static hd_patience patience(hd_scheduler *scheduler)
{
    awaited found = {false, rb_ary_new()};
    hd_map_each(&scheduler->reactor.waits, look_at, &found);
    if (found.real) return HD_GOES_AS_MACHINE;
    if (RARRAY_LEN(found.ios) == 0 && rb_thread_alone()) return HD_JUMPS_AT_ONCE;
    return FIX2INT(rb_funcall(scheduler->virtual_clock.owner, rb_intern("patience"), 1, found.ios));
}

static void wake_idler(hd_map_node *node, void *owner)
{
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    if ((VALUE)wait->subject == (VALUE)owner) hd_wait_settle(wait, HD_WOKEN_BY_EVENT);
}

bool hd_virtual_clock_goes_on(hd_scheduler *scheduler, int64_t *timeout_ns)
{
    hd_reactor *reactor = &scheduler->reactor;
    if (scheduler->virtual_clock.taken != reactor->rounds.taken) scheduler->virtual_clock.silent_ns = 0;
    scheduler->virtual_clock.taken = reactor->rounds.taken;
    scheduler->virtual_clock.asleep_ns = hd_clock_machine();
    scheduler->virtual_clock.as_machine = false;
    bool has_deadline = *timeout_ns != HD_NO_DEADLINE;
    if (!has_deadline && !scheduler->virtual_clock.idlers) return false;
    hd_patience kind = patience(scheduler);
    if (hd_reactor_has_ready(reactor)) return true; /* a signal's handler may have run meanwhile */
    *timeout_ns = hd_reactor_timeout(reactor);
    has_deadline = *timeout_ns != HD_NO_DEADLINE;
    int64_t threshold_ns = kind == HD_JUMPS_AT_ONCE ? 0 : scheduler->virtual_clock.threshold_ns;
    int64_t left_ns = threshold_ns - scheduler->virtual_clock.silent_ns;
    scheduler->virtual_clock.as_machine = kind == HD_GOES_AS_MACHINE;
    if (left_ns > 0) {
        bool may_jump = kind == HD_JUMPS_AFTER_THRESHOLD || scheduler->virtual_clock.idlers;
        if (may_jump) *timeout_ns = kind == HD_GOES_AS_MACHINE ? hd_earlier(left_ns, *timeout_ns) : left_ns;
        return false;
    }
    void *owner = (void *)scheduler->virtual_clock.owner;
    if (scheduler->virtual_clock.idlers) hd_map_each(&reactor->waits, wake_idler, owner);
    if (hd_reactor_has_ready(reactor)) return true;
    if (kind == HD_GOES_AS_MACHINE || !has_deadline) return false;
    int64_t next_ns = reactor->now_ns + *timeout_ns;
    scheduler->virtual_clock.silent_ns = 0;
    hd_clock_own(next_ns);
    hd_reactor_jump(reactor, next_ns);
    return true;
}

void hd_virtual_clock_slept(hd_scheduler *scheduler)
{
    int64_t slept_ns = hd_clock_machine() - scheduler->virtual_clock.asleep_ns;
    scheduler->virtual_clock.silent_ns += slept_ns;
    if (scheduler->virtual_clock.as_machine) hd_clock_own(hd_clock_now() + slept_ns);
}
