/* Makes Mutex#sleep and ConditionVariable#wait return nil when they end by their timeout. Ruby (up to 4.0) does not
 * look at the value that the hook kernel_sleep returns. So methods of Heddle's replace these two, and push a frame.
 * The hook notes in the frame how the sleep has ended. It also reads there what it waits for: the wait for a
 * ConditionVariable is ended only by a signal of it. */
#include "mutex_sleep.h"

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "park.h"

static VALUE cMutex;

static hd_mutex_sleep *innermost(const hd_scheduler *scheduler)
{
    return (hd_mutex_sleep *)hd_frame_find(scheduler, rb_fiber_current(), HD_FRAME_MUTEX_SLEEP);
}

hd_mutex_sleep *hd_mutex_sleep_begins(hd_scheduler *scheduler)
{
    hd_mutex_sleep *first = NULL;
    /* Up to 3.4 ConditionVariable#wait calls Mutex#sleep, which has no answer without a timeout. A later sleep of
     * the program, in a Mutex#sleep of its own or in a handler, belongs to neither call. */
    for (hd_mutex_sleep *one = innermost(scheduler); one; one = (hd_mutex_sleep *)hd_frame_next(&one->frame)) {
        if (!first && one->sleeps) first = one;
        one->sleeps = false;
    }
    return first;
}

static VALUE call_original(VALUE pointer)
{
    hd_mutex_sleep *sleep = (void *)pointer;
    return rb_funcallv(sleep->self, sleep->kept, sleep->argc, sleep->argv);
}

static VALUE wait_for_lock(VALUE pointer)
{
    hd_mutex_sleep *sleep = (void *)pointer;
    hd_request request = {.kind = HD_WAIT_FOR_BLOCK, .subject = sleep->mutex, .deadline_ns = HD_NO_DEADLINE};
    hd_park(sleep->frame.scheduler, &request);
    return Qnil;
}

/* As with threads, nothing ends the locking at the end of the sleep, or the fiber would go on without the lock. Ruby
 * tries again whenever this function returns. A Fiber#kill is raised again at the next switch. */
bool hd_lock_again(hd_scheduler *scheduler, VALUE mutex)
{
    hd_mutex_sleep *sleep = innermost(scheduler);
    if (!sleep || sleep->mutex != mutex) return false;
    hd_caught caught;
    VALUE before = rb_errinfo();
    hd_catch(wait_for_lock, (VALUE)sleep, &caught);
    if (!NIL_P(caught.exception) && NIL_P(sleep->raised))
        sleep->raised = caught.exception;
    else if (!NIL_P(caught.exception))
        rb_ary_push(NIL_P(sleep->later) ? sleep->later = rb_ary_new() : sleep->later, caught.exception);
    else if (hd_is_kill(&caught))
        hd_restore_errinfo(before);
    else
        hd_go_on(&caught);
    return true;
}

static VALUE timed(VALUE self, ID kept, int argc, VALUE *argv, int timeout_index, VALUE condition)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    if (!scheduler) return rb_funcallv(self, kept, argc, argv);
    bool limited = argc == timeout_index + 1 && !NIL_P(argv[timeout_index]);
    hd_mutex_sleep sleep = {.self = self, .kept = kept, .condition = condition, .raised = Qnil, .later = Qnil,
                            .mutex = NIL_P(condition) ? self : argv[0], .argc = argc, .argv = argv,
                            .sleeps = limited || !NIL_P(condition)};
    int state = 0;
    hd_frame_push(&sleep.frame, scheduler, HD_FRAME_MUTEX_SLEEP);
    VALUE value = rb_protect(call_original, (VALUE)&sleep, &state);
    hd_frame_pop(&sleep.frame);
    hd_raise_all_later(scheduler, sleep.later);
    if (state && !NIL_P(sleep.raised)) hd_raise_later(scheduler, hd_root(scheduler), sleep.raised);
    if (state) rb_jump_tag(state);
    if (!NIL_P(sleep.raised)) rb_exc_raise(sleep.raised);
    return sleep.timed_out ? Qnil : value;
}

/* Replaces Thread::Mutex#sleep. */
static VALUE mutex_sleep(int argc, VALUE *argv, VALUE mutex)
{
    return timed(mutex, HD_KEPT("sleep"), argc, argv, 0, Qnil);
}

/* Replaces Thread::ConditionVariable#wait, which does not call the method Mutex#sleep since 4.0. */
static VALUE condition_wait(int argc, VALUE *argv, VALUE condition)
{
    if (argc < 1 || !RTEST(rb_obj_is_kind_of(argv[0], cMutex)))
        return rb_funcallv_kw(condition, HD_KEPT("wait"), argc, argv, RB_PASS_CALLED_KEYWORDS);
    return timed(condition, HD_KEPT("wait"), argc, argv, 1, condition);
}

void hd_init_mutex_sleep(void)
{
    cMutex = rb_path2class("Thread::Mutex");
    rb_gc_register_mark_object(cMutex);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_method(rb_define_module_under(core_ext, "MutexSleep"), "sleep", mutex_sleep, -1);
    rb_define_method(rb_define_module_under(core_ext, "ConditionWait"), "wait", condition_wait, -1);
}
