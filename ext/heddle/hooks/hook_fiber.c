/* The hooks fiber (Fiber.schedule) and yield, and the methods of Heddle::Task that are in C. */
#include "fibers/pending/pending.h"
#include "fibers/scheduled_fiber.h"
#include "ruby/fiber_insides.h"
#include "ruby/init.h"

static ID id_waiters;

static VALUE end_task(VALUE self, VALUE task)
{
    hd_end_task(hd_scheduler_get(self), task);
    return Qnil;
}

/* Returns the object on which fibers and threads wait for the task: the first one that was offered. No lock is needed,
 * because no other thread runs in between. A Mutex would also keep a signal handler from waiting. */
static VALUE waiters_of(VALUE self, VALUE task, VALUE offered)
{
    VALUE waiters = rb_attr_get(task, id_waiters);
    return NIL_P(waiters) ? rb_ivar_set(task, id_waiters, offered) : waiters;
}

/* Runs a task's method run in a new fiber of the scheduler. It is a method of the task, because a method of the
 * scheduler that a refinement makes public costs twice as much to call. */
static VALUE task_start_fiber(VALUE task, VALUE scheduler)
{
    return hd_start_fiber(hd_scheduler_ready(scheduler), task, task);
}

/* @private
 * @return [Heddle::Task, nil] the task that runs on this thread, or in which the current fiber was started */
static VALUE task_s_here(VALUE class)
{
    const hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler ? scheduler->running.task : Qnil;
}

/* @private Gives a task that runs this block within another task its own $~ and $_.
 * @param block [#call] if it is not a Proc, nothing is done */
static VALUE task_s_match_apart(VALUE class, VALUE block)
{
    if (RTEST(rb_obj_is_proc(block))) hd_match_apart(block);
    return Qnil;
}

/* Runs the block in a new fiber of the scheduler, as task_start_fiber runs a task.
 *
 * @overload fiber(*, &block)
 *   @return [Fiber]
 * @see https://docs.ruby-lang.org/en/master/Fiber/Scheduler.html#method-i-fiber */
static VALUE hook_fiber(int argc, VALUE *argv, VALUE self)
{
    VALUE block;
    rb_scan_args(argc, argv, "0*&", NULL, &block);
    if (NIL_P(block)) rb_raise(rb_eArgError, "a block is needed");
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    return hd_start_fiber(scheduler, block, scheduler->running.task);
}

/* Lets the other fibers run. Ruby 4.0 and newer call it after a signal. A fiber that waits or turns the loop lets them
 * run anyway.
 *
 * @return [void] */
static VALUE hook_yield(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    VALUE fiber = rb_fiber_current();
    bool turns = scheduler->home.waits && scheduler->home.fiber == fiber;
    if (!turns && !hd_wait_of(scheduler, fiber)) hd_yield(scheduler);
    return Qnil;
}

void hd_init_hooks_fiber(void)
{
    id_waiters = rb_intern("@waiters");
    rb_define_method(hd_cScheduler, "fiber", hook_fiber, -1);
    rb_define_method(hd_cScheduler, "yield", hook_yield, 0);
    VALUE cTask = rb_define_class_under(hd_mHeddle, "Task", rb_cObject);
    rb_define_private_method(cTask, "start_fiber", task_start_fiber, 1);
    rb_define_singleton_method(cTask, "here", task_s_here, 0);
    rb_define_singleton_method(cTask, "match_apart", task_s_match_apart, 1);
    rb_define_private_method(hd_cScheduler, "end_task", end_task, 1);
    rb_define_private_method(hd_cScheduler, "waiters_of", waiters_of, 2);
}
