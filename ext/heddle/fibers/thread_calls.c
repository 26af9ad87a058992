/* See thread_calls.h. An exception that another thread has sent cannot be told from one that the block has raised.
 * So what is sent to a thread that runs a scheduler is noted, as long as the exception exists. */
#include "thread_calls.h"

#include <string.h>

#include "fibers/pending/pending.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "loop.h"
#include "unblock_relay.h"

static VALUE cConditionVariable;

bool hd_thread_was_sent(const hd_scheduler *scheduler, VALUE exception)
{
    return !NIL_P(scheduler->sent) && RTEST(rb_funcall(scheduler->sent, rb_intern("key?"), 1, exception));
}

/* Removes the option cause: from the arguments. Thread#raise takes it since 4.0. */
static VALUE take_cause(int *argc, VALUE *argv)
{
    VALUE cause = Qundef;
    if (!HD_THREAD_RAISE_TAKES_CAUSE || !rb_keyword_given_p()) return cause;
    VALUE options = rb_hash_dup(argv[*argc - 1]), key = ID2SYM(rb_intern("cause"));
    cause = rb_hash_lookup2(options, key, Qundef);
    rb_hash_delete(options, key);
    argv[*argc - 1] = options;
    if (RHASH_EMPTY_P(options)) --*argc;
    return cause;
}

static void note_sent(hd_scheduler *scheduler, VALUE exception)
{
    if (NIL_P(scheduler->sent)) scheduler->sent = rb_class_new_instance(0, NULL, rb_path2class("ObjectSpace::WeakMap"));
    rb_funcall(scheduler->sent, rb_intern("[]="), 2, exception, Qtrue);
}

/* Replaces Thread#raise. Ruby's own method gets the exception that it would make. */
static VALUE thread_raise(int argc, VALUE *argv, VALUE thread)
{
    enum { ARGUMENTS_MAX = 4 };
    hd_scheduler *scheduler = hd_scheduler_in(thread);
    ID kept = HD_KEPT("raise");
    if (!scheduler || argc > ARGUMENTS_MAX) return rb_funcallv_kw(thread, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE given[ARGUMENTS_MAX + 1] = {Qnil}, sent[2];
    if (argc) memcpy(given, argv, (size_t)argc * sizeof(VALUE));
    int count = argc;
    VALUE cause = take_cause(&count, given);
    if (argc && !count) return rb_funcallv_kw(thread, kept, argc, argv, RB_PASS_CALLED_KEYWORDS); /* ArgumentError */
    sent[0] = count ? rb_make_exception(count, given) : rb_exc_new(rb_eRuntimeError, NULL, 0);
    note_sent(scheduler, sent[0]);
    if (RB_UNDEF_P(cause)) return rb_funcallv(thread, kept, 1, sent);
    sent[1] = rb_hash_new();
    rb_hash_aset(sent[1], ID2SYM(rb_intern("cause")), cause);
    return rb_funcallv_kw(thread, kept, 2, sent, RB_PASS_KEYWORDS);
}

/* Is it a wait in sleep, in Thread.stop, or in ConditionVariable#wait? */
static bool sleeps(const hd_wait *wait)
{
    VALUE subject = (VALUE)wait->subject;
    return wait->kind == HD_WAIT_FOR_SLEEP ||
           (wait->kind == HD_WAIT_FOR_BLOCK && (subject == rb_cThread || hd_is_a(subject, cConditionVariable)));
}

/* Ends the sleep of the main block, which counts as the thread's own. The tasks sleep on. */
static void wake_main(VALUE thread)
{
    hd_scheduler *scheduler = hd_scheduler_in(thread);
    VALUE fiber = scheduler ? rb_funcall(scheduler->self, rb_intern("main_fiber"), 0) : Qnil;
    hd_wait *wait = NIL_P(fiber) ? NULL : hd_wait_of_chain(scheduler, fiber);
    if (wait && sleeps(wait)) hd_wake_wait(wait, HD_WOKEN_BY_UNBLOCK);
}

/* Replaces Thread#wakeup. */
static VALUE wakeup(VALUE thread)
{
    wake_main(thread);
    return rb_funcallv(thread, HD_KEPT("wakeup"), 0, NULL);
}

/* Replaces Thread#run. */
static VALUE run(VALUE thread)
{
    wake_main(thread);
    return rb_funcallv(thread, HD_KEPT("run"), 0, NULL);
}

/* Replaces Thread.stop. Ruby asks no scheduler, so all the fibers of the thread would stand still. Unlike a sleep
 * without an end, this is a wait for another thread: if all threads have stopped, it is a deadlock. */
static VALUE stop(VALUE thread_class)
{
    const hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler || rb_thread_alone()) return rb_funcallv(thread_class, HD_KEPT("stop"), 0, NULL);
    rb_fiber_scheduler_block(scheduler->self, rb_cThread, Qnil);
    return Qnil;
}

/* @private Makes the loop start the tasks that another thread has left: see Scheduler#start_left. */
static VALUE call_loop(VALUE scheduler)
{
    hd_loop_call(hd_scheduler_get(scheduler));
    return Qnil;
}

void hd_init_thread_calls(void)
{
    rb_define_private_method(hd_cScheduler, "call_loop", call_loop, 0);
    cConditionVariable = rb_path2class("Thread::ConditionVariable");
    rb_gc_register_mark_object(cConditionVariable);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    VALUE calls = rb_define_module_under(core_ext, "ThreadCalls");
    rb_define_method(calls, "raise", thread_raise, -1);
    rb_define_method(calls, "wakeup", wakeup, 0);
    rb_define_method(calls, "run", run, 0);
    rb_define_method(rb_define_module_under(core_ext, "ThreadStop"), "stop", stop, 0);
}
