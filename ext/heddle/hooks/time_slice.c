/* TIME SLICES: a fiber that computes for too long lets the other ready fibers run.
 *
 * Problem: the loop turns only when a fiber waits, so a fiber that computes holds up all others. Way: the watch
 * (fibers/watch.h) triggers a postponed job when a fiber has run for its slice. Ruby calls the job where it would also
 * switch threads. The job parks the fiber behind all others that are ready, as at the end of a turn (fibers/turn.h),
 * and returns when the fiber has its next turn. If no other fiber is ready, the fiber goes on at once.
 *
 * A slice does not end everywhere:
 *
 *  - Code in Ruby must be on top, or a method in C that only computes (ruby/top_frame.h).
 *  - The fiber must be one of the scheduler's own, on its thread, not blocking, not in a wait, and in no call that
 *    Heddle has not finished.
 *  - No function that the gem ffi has called must be running: its callbacks in Ruby must not stop.
 *  - The fiber must not be in a block of Heddle.without_time_slices, or of handle_interrupt(Object => :never).
 *  - The thread must not have been sent anything that no fiber has looked at, the scheduler must not be ending, and it
 *    must not have a virtual clock.
 *
 * The stopped fiber still counts as computing: no event, cancel or timeout ends its wait. Exceptions that are sent to
 * it are raised later, and never in the job, because Ruby drops an exception that is raised there. A cancel or a
 * Fiber#raise is raised at the next wait of the fiber. What must end code that computes goes into the thread's queue of
 * interrupts (ruby/interrupt_queue.h), and Ruby raises it right after the job: a Thread#raise, a kill, an exit, the
 * cancel at the end of a grace period, and an overdue timeout. The job waits until the thread that looks after timeouts
 * (fibers/pending/overdue.h) has sent it.
 *
 * Price: code that relies on nobody running between two waits is wrong with time slices. Heddle's own code is exempt.
 * A job is called once for each slice.
 *
 * Sources: CRuby's vm_trace.c (rb_postponed_job_flush), thread.c (rb_threadptr_execute_interrupts), cont.c
 * (fiber_switch); guides/design.md, "Time slices". */
#include "fibers/inline_call.h"
#include "fibers/loop.h"
#include "fibers/park.h"
#include "fibers/pending/overdue.h"
#include "fibers/watch.h"
#include "ruby/init.h"
#include "ruby/interrupt_queue.h"
#include "ruby/top_frame.h"

/* -- may the slice end here? ------------------------------------------------------------------------------------- */

/* Finds the scheduler of the current fiber if it runs, or NULL: Ruby calls the job in any thread. */
static hd_scheduler *running_scheduler(void)
{
    hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler || !scheduler->reactor.backend) return NULL;
    return hd_scheduler_inside(scheduler) && !hd_scheduler_foreign(scheduler) ? scheduler : NULL;
}

static bool is_in_frame(const hd_scheduler *scheduler, VALUE fiber)
{
    static const hd_frame_kind kinds[] = {HD_FRAME_WHOLE, HD_FRAME_INLINE, HD_FRAME_CLOSE, HD_FRAME_MUTEX_SLEEP};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (hd_frame_find(scheduler, fiber, kinds[i])) return true;
    return false;
}

/* Says whether the fiber must not stop. A wait of its chain means that a signal's handler runs on top of the wait, or
 * that a switch is not over yet. */
static bool must_go_on(hd_scheduler *scheduler)
{
    VALUE root = hd_root(scheduler), fiber = rb_fiber_current();
    if (hd_wait_of(scheduler, fiber) || hd_wait_of_chain(scheduler, root)) return true;
    if (is_in_frame(scheduler, fiber) || (root != fiber && is_in_frame(scheduler, root))) return true;
    if (scheduler->masks.ended || scheduler->virtual_clock.on) return true;
    if (hd_interrupt_mask(scheduler, (hd_recipient){root, fiber, 0, false}, rb_cObject) == HD_MASK_NEVER) return true;
    return hd_thread_was_sent_something(scheduler) || hd_in_foreign_call();
}

/* -- the end of a slice ------------------------------------------------------------------------------------------- */

/* Lets the other fibers run that are ready. */
static void let_others_run(hd_scheduler *scheduler)
{
    hd_watch_slice_job_runs(false);
    hd_park(scheduler, &(hd_request){.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = HD_BEHIND, .quiet = true,
                                     .sliced = true});
    hd_watch_slice_job_runs(true);
}

/* Takes what must be raised now, or nil: an exception that another fiber has left for home, such as an exit, or the
 * cancel at the end of a grace period. */
static VALUE take_what_ends(hd_scheduler *scheduler)
{
    VALUE left = hd_root(scheduler) == scheduler->home.fiber ? hd_take_fatal(scheduler) : Qnil;
    return NIL_P(left) ? hd_pending_take_forced(scheduler) : left;
}

static VALUE end_of_slice(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    if (must_go_on(scheduler)) return Qnil;
    unsigned generation = hd_fork_generation;
    if (hd_overdue_raise_here(scheduler)) return Qnil;
    hd_loop_poll(scheduler);
    if (hd_reactor_has_ready(&scheduler->reactor)) let_others_run(scheduler);
    if (hd_forked_since(generation)) return Qnil;
    VALUE left = take_what_ends(scheduler);
    if (!NIL_P(left)) return left;
    /* Ruby looks at the interrupts of the thread right after the job, if this fiber has the flag. */
    if (hd_thread_was_sent_something(scheduler))
        rb_thread_wakeup(rb_thread_current());
    else
        hd_overdue_raise_here(scheduler);
    return Qnil;
}

/* Ends the slice, unless the fiber must go on. The next slice begins in both cases. An exception, an exit or a
 * Thread#kill may come anywhere in it, and is raised after the job. Ruby looks at the thread's interrupts in each call
 * of a method, too. */
static void end_slice(hd_scheduler *scheduler)
{
    VALUE errinfo = rb_errinfo();
    hd_caught caught;
    VALUE left = hd_catch(end_of_slice, (VALUE)scheduler, &caught);
    if (!caught.state && !NIL_P(left)) caught = (hd_caught){HD_RAISED, left};
    hd_raise_after_job(&caught, errinfo);
    hd_watch_note_start(scheduler); /* the next slice begins */
}

static void slice(void *unused)
{
    (void)unused;
    hd_scheduler *scheduler = running_scheduler();
    if (!scheduler || !hd_watch_slice_is_over(scheduler)) return;
    hd_watch_slice_job_runs(true);
    if (hd_top_frame(0) == HD_TOP_COMPUTES)
        end_slice(scheduler);
    else
        hd_watch_try_again(scheduler);
    hd_watch_slice_job_runs(false);
}

/* @private Ends the slice of the current fiber, unless the fiber must go on. For tests, which do this at every line.
 *
 * @param skipped [Integer, nil] the frames on top that belong to the test; nil: code that is exempt is stopped, too */
static VALUE scheduler_s_end_slice(VALUE class, VALUE skipped)
{
    (void)class;
    hd_scheduler *scheduler = running_scheduler();
    if (!scheduler || (!NIL_P(skipped) && hd_top_frame(NUM2INT(skipped)) != HD_TOP_COMPUTES)) return Qnil;
    hd_watch_slice_job_runs(true);
    end_slice(scheduler);
    hd_watch_slice_job_runs(false);
    return Qnil;
}

/* -- for programs -------------------------------------------------------------------------------------------------- */

/* @private Gives its fibers time slices of this number of seconds. */
static VALUE scheduler_slice_time(VALUE self, VALUE seconds)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    scheduler->watch.slice_ns = (int64_t)(NUM2DBL(seconds) * HD_NS_PER_SECOND);
    hd_watch_begin(scheduler);
    return Qnil;
}

/* @private
 * @return [Float, nil] the seconds of a time slice; nil: its fibers have none */
static VALUE scheduler_time_slice(VALUE self)
{
    int64_t slice_ns = hd_scheduler_get(self)->watch.slice_ns;
    return slice_ns ? DBL2NUM((double)slice_ns / HD_NS_PER_SECOND) : Qnil;
}

/* @private Runs the block whole: no slice ends in it, unless it waits. */
static VALUE scheduler_whole(VALUE self)
{
    return hd_call_inline(hd_scheduler_get(self), HD_FRAME_WHOLE, rb_yield, Qundef);
}

/* @private Makes code exempt from time slices, in every file whose real path begins with this. */
static VALUE scheduler_s_exempt(VALUE class, VALUE prefix)
{
    (void)class;
    hd_exempt(prefix);
    return Qnil;
}

/* @private Why time slices do not work here, or nil. */
static VALUE scheduler_s_no_slices(VALUE class)
{
    (void)class;
    if (!hd_in_main_ractor()) return rb_str_new_cstr("they exist in the main Ractor only");
    if (!hd_knows_interrupt_queue()) return rb_str_new_cstr("the interrupt queue of a thread was not found");
    return hd_watch_has_slices() ? Qnil : rb_str_new_cstr("all 32 postponed jobs of Ruby are taken");
}

void hd_init_time_slice(void)
{
    hd_watch_slices(slice);
    rb_define_private_method(hd_cScheduler, "slice_time", scheduler_slice_time, 1);
    rb_define_private_method(hd_cScheduler, "time_slice", scheduler_time_slice, 0);
    rb_define_private_method(hd_cScheduler, "whole", scheduler_whole, 0);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "end_slice", scheduler_s_end_slice, 1);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "exempt", scheduler_s_exempt, 1);
    rb_define_private_method(rb_singleton_class(hd_cScheduler), "no_slices", scheduler_s_no_slices, 0);
}
