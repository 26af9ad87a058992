/* Deadlock, as Ruby defines it for threads.
 *
 * Problem: a thread whose fibers all wait for each other would sleep for ever. Way: when a poll brings nothing for a
 * while, the loop checks whether all fibers wait for a lock, a queue or a thread, without a timeout. A fiber in
 * sleep or at an IO, a timer, a child process or a worker rules a deadlock out, and so does another thread that is
 * not in such a wait itself. Price: the other threads are looked at only now and then, so a deadlock is found a
 * little late. */
#include "deadlock.h"

#include "ruby/init.h"
#include "ruby/ruby_internals.h"

enum { FIRST_LOOK_MS = 100, LAST_LOOK_MS = 10 * 1000 };

int64_t hd_deadlock_patience(hd_scheduler *scheduler)
{
    if (scheduler->reactor.armed > 0) return HD_NO_DEADLINE;
    if (scheduler->loop.patience_ms == 0) scheduler->loop.patience_ms = FIRST_LOOK_MS;
    return scheduler->loop.patience_ms * HD_NS_PER_MS;
}

static void look_for_hope(hd_map_node *node, void *hope)
{
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    bool hopeless = wait->kind == HD_WAIT_FOR_BLOCK || wait->kind == HD_WAIT_FOR_THREAD;
    if (!hopeless || wait->state != HD_WAIT_PARKED || hd_timer_set(&wait->timer)) *(bool *)hope = true;
}

void hd_deadlock_check(hd_scheduler *scheduler)
{
    const hd_reactor *reactor = &scheduler->reactor;
    bool hope = reactor->armed > 0 || reactor->timers.count > 0 || reactor->limits.count > 0;
    hd_map_each(&scheduler->reactor.waits, look_for_hope, &hope);
    if (!hope && scheduler->reactor.waits.count > 0) rb_funcall(scheduler->self, rb_intern("check_deadlock"), 0);
    int longer_ms = scheduler->loop.patience_ms * 10;
    scheduler->loop.patience_ms = longer_ms > LAST_LOOK_MS ? LAST_LOOK_MS : longer_ms;
}

/* Has the program a handler for a signal, besides Heddle's own? */
static VALUE handles_signals_p(VALUE self, VALUE ours)
{
    return HD_BOOL(hd_program_handles_signals(ours));
}

static VALUE waits_for_ever_p(VALUE self, VALUE thread)
{
    return HD_BOOL(hd_thread_waits_for_ever(thread));
}

void hd_init_deadlock(void)
{
    rb_define_private_method(hd_cScheduler, "waits_for_ever?", waits_for_ever_p, 1);
    rb_define_private_method(hd_cScheduler, "handles_signals?", handles_signals_p, 1);
}
