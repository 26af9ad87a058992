/* Kernel#sleep in a task. Ruby looks the hook up by its name, which takes a quarter of the time of a sleep(0), so this
 * method calls it directly. */
#include "core/clock.h"
#include "fibers/scheduler.h"
#include "hooks/hook_block.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"

/* Is the hook Heddle's own? A subclass, or an object with methods of its own, may have another one. */
static bool has_our_hook(VALUE scheduler)
{
    return !NIL_P(scheduler) && RBASIC_CLASS(scheduler) == hd_cScheduler;
}

/* Sleeps, and returns how many seconds the wall clock has gone on, as Ruby's own method does. */
static VALUE direct_sleep(int argc, VALUE *argv, VALUE self)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    if (!has_our_hook(scheduler)) return rb_funcallv(self, HD_KEPT("sleep"), argc, argv);
    int64_t began = hd_clock_wall_seconds();
    hd_kernel_sleep(argc, argv, scheduler);
    return LL2NUM(hd_clock_wall_seconds() - began);
}

void hd_init_direct_sleep(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_private_method(rb_define_module_under(core_ext, "DirectSleep"), "sleep", direct_sleep, -1);
}
