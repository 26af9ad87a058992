/* See warm_stacks.h. */
#include "warm_stacks.h"

#include "ruby/caught.h"
#include "ruby/stack_pool.h"

#ifdef HEDDLE_ASSERT_BUILD /* its tests meet many passes, each in many parts */
enum { PERIOD_NS = HD_NS_PER_MS, PART_NS = 0 };
#else
enum { PERIOD_NS = HD_NS_PER_SECOND / 2, PART_NS = HD_NS_PER_MS / 10 };
#endif

/* KEPT_WHEN_IDLE: the number of vacant stacks that stay warm when nothing happens. KEPT_AT_END: when the last scheduler
 * closes, up to this number of vacant stacks stay warm, and no thread is started to give them back. */
enum { KEPT_WHEN_IDLE = 64, KEPT_AT_END = 1024 };

static struct {
    int open; /* schedulers */
    bool in_pass, gives_all;
    size_t peak, peak_before; /* stacks in use, in this period and in the one before it */
    size_t least_vacant;      /* since the last pass */
    int64_t due_ns;
} stacks = {.due_ns = HD_NO_DEADLINE};

/* There has been another Ractor. From then on Ruby does as it does by itself, because a pass reads the list of stacks,
 * which the fibers of another Ractor change at any time. The loop must not ask Ractor.count instead, because a
 * method in Ruby may run the handlers of signals. */
static bool several_ractors;

void hd_warm_stacks_leave(void)
{
    several_ractors = true;
    if (hd_stack_pool_found()) hd_stack_pool_keeps_memory(false);
}

/* Is there a Ractor that was made before Heddle replaced Ractor.new? */
static void look_for_ractors(void)
{
    static bool looked;
    if (!looked && rb_funcall(rb_path2class("Ractor"), rb_intern("count"), 0) != INT2FIX(1)) hd_warm_stacks_leave();
    looked = true;
}

void hd_warm_stacks_open(hd_scheduler *scheduler)
{
    if (!hd_stack_pool_found() || scheduler->stacks_are_warm) return;
    look_for_ractors();
    if (several_ractors) return;
    scheduler->stacks_are_warm = true;
    if (__atomic_fetch_add(&stacks.open, 1, __ATOMIC_RELAXED) == 0) hd_stack_pool_keeps_memory(true);
}

void hd_warm_stacks_forget(hd_scheduler *scheduler)
{
    if (!scheduler->stacks_are_warm) return;
    scheduler->stacks_are_warm = false;
    if (__atomic_fetch_sub(&stacks.open, 1, __ATOMIC_RELAXED) == 1) hd_stack_pool_keeps_memory(false);
}

void hd_warm_stacks_note_start(void)
{
    if (!hd_stack_pool_found()) return;
    size_t used = hd_stack_pool_used() + 1, vacant = hd_stack_pool_vacant();
    if (used > stacks.peak) stacks.peak = used;
    if (vacant <= stacks.least_vacant) stacks.least_vacant = vacant ? vacant - 1 : 0;
}

int64_t hd_warm_stacks_due(int64_t now_ns)
{
    if (several_ractors || !hd_stack_pool_found()) return HD_NO_DEADLINE;
    if (stacks.due_ns != HD_NO_DEADLINE) return stacks.due_ns;
    if (hd_stack_pool_vacant() > stacks.least_vacant + KEPT_WHEN_IDLE) stacks.due_ns = now_ns + PERIOD_NS;
    return stacks.due_ns;
}

/* Returns the number of vacant stacks to keep: the peak of the last two periods may come again. */
static size_t kept_now(void)
{
    size_t used = hd_stack_pool_used(), peak = stacks.peak > stacks.peak_before ? stacks.peak : stacks.peak_before;
    stacks.peak_before = stacks.peak;
    stacks.peak = used;
    return peak > used + KEPT_WHEN_IDLE ? peak - used : KEPT_WHEN_IDLE;
}

void hd_warm_stacks_look(int64_t now_ns)
{
    stacks.due_ns = now_ns + PERIOD_NS;
    if (!stacks.in_pass) {
        size_t kept = kept_now();
        stacks.in_pass = hd_stack_pool_vacant() > kept;
        stacks.gives_all = kept == KEPT_WHEN_IDLE;
        if (stacks.in_pass) hd_stack_pool_begin_pass(kept);
    }
    if (stacks.in_pass) stacks.in_pass = !hd_stack_pool_pass(now_ns + PART_NS);
    if (stacks.in_pass) {
        stacks.due_ns = now_ns;
    } else if (stacks.gives_all) {
        stacks.least_vacant = hd_stack_pool_vacant();
        stacks.due_ns = HD_NO_DEADLINE;
    }
}

/* -- after the last run ------------------------------------------------------------------------------------------ */

static struct {
    bool runs;
    unsigned generation; /* a child of fork has no such thread */
} helper;

static VALUE give_back(VALUE unused)
{
    while (stacks.open == 0 && hd_warm_stacks_due(hd_clock_now()) != HD_NO_DEADLINE) {
        int64_t left_ns = stacks.due_ns - hd_clock_now();
        if (left_ns > 0) rb_thread_wait_for((struct timeval){.tv_usec = left_ns / 1000});
        rb_thread_check_ints();
        int64_t now_ns = hd_clock_now();
        if (stacks.due_ns <= now_ns) hd_warm_stacks_look(now_ns);
    }
    return Qnil;
}

static VALUE note_end(VALUE unused)
{
    helper.runs = false;
    return unused;
}

static VALUE run_helper(void *unused)
{
    return rb_ensure(give_back, Qnil, note_end, Qnil);
}

static VALUE start_helper(VALUE unused)
{
    helper.generation = hd_fork_generation;
    VALUE thread = rb_thread_create(run_helper, NULL);
    helper.runs = true;
    rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr("heddle stacks"));
    return unused;
}

void hd_warm_stacks_close(hd_scheduler *scheduler)
{
    bool was_warm = scheduler->stacks_are_warm;
    hd_warm_stacks_forget(scheduler);
    if (!was_warm || stacks.open > 0 || hd_stack_pool_vacant() <= KEPT_AT_END || several_ractors) return;
    if (helper.runs && !hd_forked_since(helper.generation)) return;
    hd_caught caught;
    hd_catch(start_helper, Qnil, &caught); /* there may be no thread at the end of the process */
    hd_go_on_if_interrupted(&caught);
}
