/* See stalls.h. */
#include "stalls.h"

#include "ruby/init.h"
#include "ruby/interrupt_queue.h"
#include "watch.h"

static VALUE look(VALUE unused)
{
    return rb_funcall(rb_const_get(hd_mHeddle, rb_intern("Stalls")), rb_intern("look"), 0);
}

/* Runs in the thread that has the GVL, between two instructions, where nothing may be raised. What arrives here from
 * outside (Ctrl-C, Thread#raise, Thread#kill) is raised right after. */
static void look_soon(void *unused)
{
    (void)unused;
    VALUE errinfo = rb_errinfo();
    hd_caught caught;
    hd_catch(look, Qnil, &caught);
    hd_raise_after_job(&caught, errinfo);
}

/* Watches the scheduler from now on. A look follows when a fiber has run for this number of seconds. */
static VALUE scheduler_watch(VALUE self, VALUE seconds)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (!hd_watch_has_stalls()) rb_raise(hd_eError, "no stall can be reported: Ruby has no place for one more job");
    scheduler->watch.stall_ns = (int64_t)(NUM2DBL(seconds) * HD_NS_PER_SECOND);
    hd_watch_begin(scheduler);
    return Qnil;
}

/* @return [Array(Fiber, Float, Integer), nil] the fiber that the loop has switched to (it runs, or has resumed the
 * fiber that does), for how many seconds, and since when, in ns; nil: no fiber runs */
static VALUE scheduler_running(VALUE self)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    int64_t since_ns = scheduler->watch.since_ns;
    if (!since_ns) return Qnil;
    VALUE seconds = DBL2NUM((double)(hd_clock_machine() - since_ns) / HD_NS_PER_SECOND);
    return rb_ary_new_from_args(3, scheduler->running.root, seconds, LL2NUM(since_ns));
}

void hd_init_stalls(void)
{
    hd_watch_stalls(look_soon);
    rb_define_private_method(hd_cScheduler, "watch", scheduler_watch, 1);
    rb_define_private_method(hd_cScheduler, "running", scheduler_running, 0);
}
