/* Mutex#sleep and ConditionVariable#wait return nil when they end by their timeout, but Ruby (up to 4.0) does not look
 * at what the hook kernel_sleep returns. The methods are prepended: the hook leaves a note in the call's record, and
 * learns from it what it waits for: only a signal ends the wait for a ConditionVariable. */
#include "timed_sleep.h"

static VALUE cMutex;

struct hd_timed_sleep {
    hd_scheduler *scheduler;
    VALUE fiber, condition; /* condition: nil for Mutex#sleep */
    int argc;
    VALUE *argv;
    bool timed_out;
};

hd_timed_sleep *hd_timed_sleep_take(hd_scheduler *scheduler)
{
    hd_timed_sleep *sleep = scheduler->timed_sleep;
    if (!sleep || sleep->fiber != rb_fiber_current()) return NULL;
    scheduler->timed_sleep = NULL;
    return sleep;
}

VALUE hd_timed_sleep_condition(const hd_timed_sleep *sleep)
{
    return sleep ? sleep->condition : Qnil;
}

void hd_timed_sleep_ended(hd_timed_sleep *sleep, bool timed_out)
{
    sleep->timed_out = timed_out;
}

static VALUE call_super(VALUE pointer)
{
    hd_timed_sleep *sleep = (void *)pointer;
    return rb_call_super(sleep->argc, sleep->argv);
}

static VALUE forget(VALUE pointer)
{
    hd_timed_sleep *sleep = (void *)pointer;
    if (sleep->scheduler->timed_sleep == sleep) sleep->scheduler->timed_sleep = NULL;
    return Qnil;
}

static VALUE timed(int argc, VALUE *argv, int timeout_index, VALUE condition)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    bool limited = argc == timeout_index + 1 && !NIL_P(argv[timeout_index]);
    if (!scheduler || (!limited && NIL_P(condition))) return rb_call_super(argc, argv);
    hd_timed_sleep sleep = {scheduler, rb_fiber_current(), condition, argc, argv, false};
    scheduler->timed_sleep = &sleep;
    VALUE value = rb_ensure(call_super, (VALUE)&sleep, forget, (VALUE)&sleep);
    return sleep.timed_out ? Qnil : value;
}

/* Prepended to Thread::Mutex#sleep; without a Heddle scheduler it is plain super. */
static VALUE mutex_sleep(int argc, VALUE *argv, VALUE mutex)
{
    (void)mutex;
    return timed(argc, argv, 0, Qnil);
}

/* Prepended to Thread::ConditionVariable#wait, which does without the method Mutex#sleep since 4.0. */
static VALUE condition_wait(int argc, VALUE *argv, VALUE condition)
{
    if (argc < 1 || !RTEST(rb_obj_is_kind_of(argv[0], cMutex))) return rb_call_super(argc, argv);
    return timed(argc, argv, 1, condition);
}

void hd_init_timed_sleep(void)
{
    cMutex = rb_path2class("Thread::Mutex");
    rb_gc_register_mark_object(cMutex);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_method(rb_define_module_under(core_ext, "MutexSleep"), "sleep", mutex_sleep, -1);
    rb_define_method(rb_define_module_under(core_ext, "ConditionWait"), "wait", condition_wait, -1);
}
