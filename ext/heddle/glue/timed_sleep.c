/* Mutex#sleep and ConditionVariable#wait return nil when they end by their timeout, but Ruby (up to 4.0) does not look
 * at what the hook kernel_sleep returns. Methods of Heddle's take their place: the hook leaves a note in the call's
 * record, and learns from it what it waits for: only a signal ends the wait for a ConditionVariable. */
#include "timed_sleep.h"

#include "core_ext.h"
#include "park.h"

static VALUE cMutex;
static ID id_locks_again; /* where a fiber has the address of its record */

struct hd_timed_sleep {
    hd_scheduler *scheduler;
    VALUE self, fiber, condition; /* condition: nil for Mutex#sleep */
    VALUE mutex, struck, later; /* what came while the fiber locked it again, and what came after that; or nil */
    ID kept;             /* Ruby's own method */
    VALUE outer;         /* what the fiber had for id_locks_again before */
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

static VALUE call_original(VALUE pointer)
{
    hd_timed_sleep *sleep = (void *)pointer;
    return rb_funcallv(sleep->self, sleep->kept, sleep->argc, sleep->argv);
}

typedef struct {
    hd_scheduler *scheduler;
    VALUE mutex;
} parking_call;

static VALUE park(VALUE pointer)
{
    parking_call *call = (void *)pointer;
    hd_park(call->scheduler, HD_WAIT_FOR_BLOCK, call->mutex, HD_NO_DEADLINE);
    return Qnil;
}

/* As with threads, nothing ends the locking at the end of the sleep: or the fiber would go on without the lock. Ruby
 * tries again whenever this returns; a Fiber#kill strikes again at the next switch. */
bool hd_lock_again(hd_scheduler *scheduler, VALUE mutex)
{
    VALUE known = rb_attr_get(rb_fiber_current(), id_locks_again);
    hd_timed_sleep *sleep = NIL_P(known) ? NULL : (hd_timed_sleep *)NUM2ULL(known);
    if (!sleep || sleep->mutex != mutex) return false;
    parking_call call = {scheduler, mutex};
    VALUE error = rb_errinfo();
    int state = 0;
    rb_protect(park, (VALUE)&call, &state);
    if (!state) return true;
    bool raised = RTEST(rb_obj_is_kind_of(rb_errinfo(), rb_eException));
    if (!raised && rb_errinfo() != HD_FIBER_KILLED) rb_jump_tag(state);
    if (raised) *(NIL_P(sleep->struck) ? &sleep->struck : &sleep->later) = rb_errinfo();
    rb_set_errinfo(RTEST(rb_obj_is_kind_of(error, rb_eException)) ? error : Qnil);
    return true;
}

static VALUE forget(VALUE pointer)
{
    hd_timed_sleep *sleep = (void *)pointer;
    rb_ivar_set(sleep->fiber, id_locks_again, sleep->outer);
    if (sleep->scheduler->timed_sleep == sleep) sleep->scheduler->timed_sleep = NULL;
    return Qnil;
}

static VALUE timed(VALUE self, ID kept, int argc, VALUE *argv, int timeout_index, VALUE condition)
{
    hd_scheduler *scheduler = hd_scheduler_of_thread();
    bool limited = argc == timeout_index + 1 && !NIL_P(argv[timeout_index]);
    if (!scheduler) return rb_funcallv(self, kept, argc, argv);
    hd_timed_sleep sleep = {.scheduler = scheduler, .self = self, .kept = kept, .fiber = rb_fiber_current(),
                            .condition = condition,
                            .mutex = NIL_P(condition) ? self : argv[0], .struck = Qnil, .later = Qnil,
                            .argc = argc, .argv = argv};
    sleep.outer = rb_attr_get(sleep.fiber, id_locks_again);
    rb_ivar_set(sleep.fiber, id_locks_again, ULL2NUM((uintptr_t)&sleep));
    if (limited || !NIL_P(condition)) scheduler->timed_sleep = &sleep;
    int state = 0;
    VALUE value = rb_protect(call_original, (VALUE)&sleep, &state);
    forget((VALUE)&sleep);
    if (!NIL_P(sleep.later)) hd_put_off(scheduler, sleep.fiber, sleep.later);
    if (state && !NIL_P(sleep.struck)) hd_put_off(scheduler, sleep.fiber, sleep.struck);
    if (state) rb_jump_tag(state);
    if (!NIL_P(sleep.struck)) rb_exc_raise(sleep.struck);
    return sleep.timed_out ? Qnil : value;
}

/* In place of Thread::Mutex#sleep. */
static VALUE mutex_sleep(int argc, VALUE *argv, VALUE mutex)
{
    return timed(mutex, HD_KEPT("sleep"), argc, argv, 0, Qnil);
}

/* In place of Thread::ConditionVariable#wait, which does without the method Mutex#sleep since 4.0. */
static VALUE condition_wait(int argc, VALUE *argv, VALUE condition)
{
    if (argc < 1 || !RTEST(rb_obj_is_kind_of(argv[0], cMutex)))
        return rb_funcallv_kw(condition, HD_KEPT("wait"), argc, argv, RB_PASS_CALLED_KEYWORDS);
    return timed(condition, HD_KEPT("wait"), argc, argv, 1, condition);
}

void hd_init_timed_sleep(void)
{
    id_locks_again = rb_intern("heddle_locks_again");
    cMutex = rb_path2class("Thread::Mutex");
    rb_gc_register_mark_object(cMutex);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_method(rb_define_module_under(core_ext, "MutexSleep"), "sleep", mutex_sleep, -1);
    rb_define_method(rb_define_module_under(core_ext, "ConditionWait"), "wait", condition_wait, -1);
}
