/* The class Heddle::Scheduler: its memory, the GC's view of it, opening and closing. */

#include "fibers/home.h"
#include "fibers/new_fiber.h"
#include "fibers/pending/pending.h"
#include "fibers/read_ahead.h"
#include "fibers/stats.h"
#include "fibers/thread_calls.h"
#include "fibers/virtual_clock.h"
#include "fibers/warm_stacks.h"
#include "fibers/watch.h"
#include "io/way.h"
#include "ruby/caught.h"
#include "ruby/fiber_insides.h"
#include "ruby/in_handler.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"

/* -- memory -------------------------------------------------------------------------------------------------- */

static void mark_wait(hd_map_node *node, void *unused)
{
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    rb_gc_mark((VALUE)hd_wait_fiber(wait)); /* pins the fiber; the scan of its stack pins everything else */
    rb_gc_mark((VALUE)wait->root);
    if (wait->exception) rb_gc_mark((VALUE)wait->exception);
}

static void scheduler_mark(void *pointer)
{
    hd_scheduler *scheduler = pointer;
    const VALUE objects[] = {
        scheduler->self,        scheduler->thread,      scheduler->sent,       scheduler->running.root,
        scheduler->home.fiber,  scheduler->home.last,   scheduler->home.fatal,  scheduler->home.maker,
        scheduler->home.outside,
        scheduler->fibers.body, scheduler->fibers.ended, scheduler->frames.fiber, scheduler->running.task,
        scheduler->virtual_clock.owner,
    };
    for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) rb_gc_mark(objects[i]);
    hd_interrupt_mask_mark(scheduler);
    /* In the child of a fork the records may be gone with the stacks of the parent's fibers. */
    if (hd_forked_since(scheduler->reactor.generation)) return;
    if (scheduler->reactor.waits.buckets) hd_map_each(&scheduler->reactor.waits, mark_wait, NULL);
    hd_pending_mark(scheduler);
}

/* Frees the scheduler. It never walks the waits, because the fibers' stacks may be swept before this object. */
static void scheduler_free(void *pointer)
{
    hd_scheduler *scheduler = pointer;
    if (!hd_forked_since(scheduler->reactor.generation)) {
        if (hd_node_linked(&scheduler->overdue_node)) hd_node_remove(&scheduler->overdue_node);
        hd_inbox_close(&scheduler->inbox);
    }
    hd_watch_end(scheduler);
    hd_warm_stacks_forget(scheduler);
    hd_reactor_close(&scheduler->reactor);
    hd_reactor_free(&scheduler->reactor);
    hd_pending_free(scheduler);
    free(scheduler->masks.kinds);
    free(scheduler->line);
    free(scheduler->known.by_descriptor);
    free(scheduler->read_memory);
    ruby_xfree(scheduler);
}

static size_t scheduler_memsize(const void *pointer)
{
    const hd_scheduler *scheduler = pointer;
    return sizeof(*scheduler) + hd_timers_memsize(&scheduler->reactor.timers) +
           (scheduler->reactor.waits.mask + scheduler->pending.by_fiber.mask + 2) * sizeof(hd_list);
}

/* Not write-barrier protected, so it is marked again in every minor collection: records come and go without the GC's
 * knowledge. */
const rb_data_type_t hd_scheduler_type = {
    .wrap_struct_name = "Heddle::Scheduler",
    .function = {.dmark = scheduler_mark, .dfree = scheduler_free, .dsize = scheduler_memsize},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* Forgets the fibers of the parent, because the child must not find them. */
static void forget_parent(hd_scheduler *scheduler)
{
    hd_reactor_forget(&scheduler->reactor, hd_fork_generation);
    hd_inbox_init(&scheduler->inbox, &scheduler->reactor);
    hd_pending_forget(scheduler);
    hd_node_init(&scheduler->overdue_node);
    scheduler->masks.blocks = scheduler->masks.kinds_count = 0;
    scheduler->fibers.count = scheduler->counted.closes = scheduler->counted.cancels = 0;
    scheduler->frames.fiber = scheduler->running.root = scheduler->home.fiber = scheduler->home.fatal = Qnil;
    scheduler->home.top = NULL;
    scheduler->home.maker = scheduler->home.outside = Qnil;
    scheduler->home.waits = scheduler->running.scheduled = false;
    scheduler->loop.check_interrupts = scheduler->loop.interrupted = false;
    scheduler->hand_over = NULL;
    scheduler->virtual_clock.idlers = 0;
    VALUE scopes = rb_attr_get(scheduler->self, rb_intern("@scopes")); /* the failures in them are the parent's */
    if (!NIL_P(scopes)) rb_hash_clear(scopes);
}

static VALUE scheduler_alloc(VALUE class)
{
    hd_scheduler *scheduler;
    VALUE self = TypedData_Make_Struct(class, hd_scheduler, &hd_scheduler_type, scheduler);
    scheduler->self = self;
    scheduler->thread = scheduler->sent = Qnil;
    scheduler->running.root = scheduler->running.task = scheduler->virtual_clock.owner = Qnil;
    scheduler->home.fiber = scheduler->home.last = scheduler->home.fatal = scheduler->home.maker = Qnil;
    scheduler->home.outside = Qnil;
    scheduler->fibers.body = scheduler->fibers.ended = scheduler->frames.fiber = Qnil;
    scheduler->forget_parent = forget_parent;
    hd_node_init(&scheduler->overdue_node);
    hd_list_init(&scheduler->pending.exceptions);
    int error = hd_reactor_init(&scheduler->reactor, NULL, hd_fork_generation);
    if (error || hd_map_init(&scheduler->pending.by_fiber) < 0) rb_memerror();
    hd_inbox_init(&scheduler->inbox, &scheduler->reactor);
    hd_find_owners();
    return self;
}

/* -- methods ------------------------------------------------------------------------------------------------- */

static VALUE scheduler_pinned_p(VALUE self)
{
    return HD_BOOL(hd_threads_are_pinned());
}

/* Returns the event backends, best first: +name+, +available+ and, when this machine does not offer it, the +reason+.
 *
 * @return [Array<Hash{Symbol => String, Boolean, nil}>] */
static VALUE heddle_backends(VALUE module)
{
    VALUE list = rb_ary_new();
    for (const hd_backend_ops *const *ops = hd_backends; *ops; ops++) {
        char reason[160] = "";
        bool available = (*ops)->probe(reason, sizeof(reason)) == 0;
        VALUE entry = rb_hash_new();
        rb_hash_aset(entry, ID2SYM(rb_intern("name")), rb_usascii_str_new_cstr((*ops)->name));
        rb_hash_aset(entry, ID2SYM(rb_intern("available")), available ? Qtrue : Qfalse);
        rb_hash_aset(entry, ID2SYM(rb_intern("reason")), available ? Qnil : rb_usascii_str_new_cstr(reason));
        rb_ary_push(list, entry);
    }
    return list;
}

static const hd_backend_ops *best_backend(void)
{
    static const hd_backend_ops *known;
    const hd_backend_ops *best = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    char reason[160];
    for (const hd_backend_ops *const *ops = hd_backends; *ops && !best; ops++)
        if (hd_backend_offered(*ops, reason, sizeof(reason))) best = *ops;
    if (!best) rb_raise(hd_eError, "no event backend is available: %s", reason);
    __atomic_store_n(&known, best, __ATOMIC_RELEASE);
    return best;
}

static const hd_backend_ops *forced_backend(const char *name)
{
    const hd_backend_ops *ops = hd_backend_named(name);
    char reason[160];
    hd_backend_names(reason, sizeof(reason));
    if (!ops) rb_raise(rb_eArgError, "backend: \"%s\" is unknown (there are: %s)", name, reason);
    if (!hd_backend_offered(ops, reason, sizeof(reason)))
        rb_raise(hd_eError, "backend %s cannot be used: %s", name, reason);
    return ops;
}

/* @private Chooses the backend, and whether system calls are shared. The Ruby half of initialize calls it with the
 * wanted names or nil. */
static VALUE scheduler_choose_backend(VALUE self, VALUE name, VALUE calls)
{
    hd_scheduler *scheduler = rb_check_typeddata(self, &hd_scheduler_type);
    scheduler->home.maker = hd_maker();
    scheduler->ops = NIL_P(name) ? best_backend() : forced_backend(StringValueCStr(name));
    if (!hd_way_choose(scheduler, NIL_P(calls) ? NULL : StringValueCStr(calls)))
        rb_raise(rb_eArgError, "HEDDLE_CALLS: %+" PRIsVALUE " is unknown (there are: ring, direct)", calls);
    return Qnil;
}

/* @return [String] the event backend in use: "uring", "epoll", "kqueue" or "poll" */
static VALUE scheduler_backend(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    return scheduler->ops ? rb_usascii_str_new_cstr(scheduler->ops->name) : Qnil;
}

/* @return [Thread, nil] the thread that runs this scheduler; nil before its first use */
static VALUE scheduler_thread(VALUE self)
{
    return hd_scheduler_get(self)->thread;
}

static void check_thread(const hd_scheduler *scheduler)
{
    if (scheduler->reactor.backend && hd_scheduler_foreign(scheduler))
        rb_raise(hd_eError, "the scheduler belongs to another thread");
}

/* Runs the fibers of this scheduler until no fiber is parked or ready. Called on the thread that has set it.
 *
 * @return [self]
 * @raise [Heddle::Error] if it is running already, or on another thread */
static VALUE scheduler_run(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    check_thread(scheduler);
    bool idle = scheduler->reactor.waits.count == 0 && NIL_P(scheduler->home.fatal);
    if (idle && !hd_scheduler_inside(scheduler)) return self;
    hd_run_until_idle(hd_scheduler_ready(self));
    return self;
}

/* Is this call made by a fiber of this scheduler, or while its loop runs? */
static VALUE scheduler_inside_p(VALUE self)
{
    return HD_BOOL(hd_scheduler_inside(hd_scheduler_get(self)));
}

static VALUE own_or_nil(VALUE scheduler)
{
    return hd_data_type(scheduler) == &hd_scheduler_type ? scheduler : Qnil;
}

/* @return [Heddle::Scheduler, nil] the scheduler with which the current fiber may wait; nil in a blocking fiber, and if
 *   the thread has no scheduler or one of another kind */
static VALUE scheduler_s_current(VALUE class)
{
    return own_or_nil(rb_fiber_scheduler_current());
}

/* @private
 * @return [Heddle::Scheduler, nil] the scheduler of this thread, whatever kind of fiber runs */
static VALUE scheduler_s_of_thread(VALUE class)
{
    return own_or_nil(rb_fiber_scheduler_get());
}

/* @return [Heddle::Scheduler, nil] the scheduler of this thread, if one of its fibers runs, or a fiber that such a
 *   fiber has resumed. Unlike .current, it also answers in a blocking fiber. */
static VALUE scheduler_s_of_blocking_fiber(VALUE class)
{
    const hd_scheduler *scheduler = hd_scheduler_of_thread();
    return scheduler && scheduler->running.scheduled ? scheduler->self : Qnil;
}

/* Notes that the current fiber runs this task from now on. */
static VALUE scheduler_set_task(VALUE self, VALUE task)
{
    return hd_scheduler_get(self)->running.task = task;
}

/* Runs the block of Heddle.run in the calling fiber (home), which may wait as a task does.
 *
 * @param task [Heddle::Task] stands for the block */
static VALUE scheduler_run_at_home(VALUE self, VALUE task)
{
    return hd_run_at_home(hd_scheduler_ready(self), task, rb_yield, Qnil);
}

/* Is this called in the handler of a signal, or in a finalizer? Nobody may lock a Mutex there, and so nobody may wait
 * for another thread. */
static VALUE scheduler_in_handler_p(VALUE self)
{
    return HD_BOOL(hd_in_handler());
}

/* Runs the block in the calling fiber, which is not blocking meanwhile: its waits park it. */
static VALUE scheduler_unblocked(VALUE self)
{
    return hd_unblocked(rb_yield, Qnil);
}

/* Is this the fiber of the caller of Heddle.run, which runs the block? */
static VALUE scheduler_home_p(VALUE self, VALUE fiber)
{
    const hd_scheduler *scheduler = hd_scheduler_get(self);
    return HD_BOOL(scheduler->home.fiber == fiber);
}

/* Has a Thread#raise sent this exception to the thread? */
static VALUE scheduler_sent_to_thread_p(VALUE self, VALUE exception)
{
    return HD_BOOL(hd_thread_was_sent(hd_scheduler_get(self), exception));
}

/* @return [Array<Fiber, nil>] two fibers that run the loop, or have run it last: that of the scheduler that this thread
 *   has now, and that of this scheduler */
static VALUE scheduler_last_homes(VALUE self)
{
    const hd_scheduler *now = hd_scheduler_of_thread();
    return rb_assoc_new(now ? now->home.last : Qnil, hd_scheduler_get(self)->home.last);
}

/* @private Notes that its thread should keep the backend: another scheduler is likely to follow. */
static VALUE scheduler_keep_backend(VALUE self)
{
    hd_scheduler_get(self)->keeps_backend = true;
    return Qnil;
}

/* Ends `run` although fibers are left. Called in one of the fibers. */
static VALUE scheduler_stop(VALUE self)
{
    hd_scheduler_get(self)->home.stopped = true;
    return Qnil;
}

/* Opens the backend on this thread, which runs the scheduler. */
static VALUE scheduler_open(VALUE self)
{
    hd_scheduler_ready(self);
    return Qnil;
}

static VALUE cancel_fibers(VALUE self)
{
    return rb_funcall(self, rb_intern("cancel_all"), 0);
}

static VALUE end_fibers(VALUE self)
{
    return rb_funcall(self, rb_intern("end_fibers"), 0);
}

static void disarm_interests(hd_map_node *node, void *scheduler)
{
    hd_wait *wait = HD_CONTAINER_OF(node, hd_wait, fiber_node);
    for (size_t i = 0; i < wait->interests_count; i++) {
        hd_interest *interest = (hd_interest *)&wait->interests[i];
        hd_interest_disarm(interest);
        if (interest->bytes && interest->result > 0) hd_put_back(scheduler, interest, interest->bytes);
        hd_interest_release(interest);
    }
}

/* Abandons the fibers that nothing could end. They stay in memory for good, because others refer to their stacks, for
 * example Ruby's queues. */
static void abandon_fibers(hd_scheduler *scheduler)
{
    rb_gc_register_mark_object(scheduler->self);
    hd_map_each(&scheduler->reactor.waits, disarm_interests, scheduler);
}

static VALUE report_abandoned(VALUE self)
{
    return rb_funcall(self, rb_intern("report_abandoned"), 0);
}

/* Errors of the reports and of the fibers that are ended here have been reported. A kill, an exit or an interrupt that
 * comes meanwhile goes on. */
static VALUE close_reactor(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_caught reporting, ending = {.exception = Qnil};
    hd_catch(report_abandoned, self, &reporting);
    if (scheduler->reactor.waits.count > 0) hd_catch(end_fibers, self, &ending);
    if (scheduler->reactor.waits.count > 0) abandon_fibers(scheduler);
    scheduler->keeps_backend &= scheduler->reactor.armed == 0;
    scheduler->closed = true;
    hd_stats_keep(scheduler);
    hd_watch_end(scheduler);
    hd_scheduler_runs(scheduler, false);
    hd_inbox_close(&scheduler->inbox);
    hd_virtual_clock_end(scheduler);
    hd_scheduler_close_backend(scheduler);
    hd_warm_stacks_close(scheduler);
    if (!hd_in_main_ractor()) rb_funcall(hd_cScheduler, rb_intern("end_threads"), 0);
    hd_go_on_if_interrupted(&reporting);
    hd_go_on_if_interrupted(&ending);
    return Qnil;
}

static VALUE cancel_in_silence(VALUE self)
{
    int ignored = 0;
    rb_set_errinfo(Qnil);
    rb_protect(cancel_fibers, self, &ignored);
    return Qnil;
}

/* Runs the remaining fibers. When the thread is ending with an exception or a kill, now or while they run, they are
 * cancelled. */
static VALUE run_or_cancel(VALUE self)
{
    int state = 0;
    if (NIL_P(rb_errinfo())) {
        rb_protect(scheduler_run, self, &state);
        if (!state) return Qnil;
    }
    /* A kill is not an exception: only rb_ensure keeps its number, which is in errinfo. */
    return rb_ensure(hd_jump, (VALUE)state, cancel_in_silence, self);
}

/* Runs the remaining fibers, then closes the backend. When the thread is ending with an exception, or is killed or
 * interrupted meanwhile, the fibers are cancelled: their ensure blocks run. Ruby calls it when the thread ends or
 * another scheduler is set.
 *
 * @return [void]
 * @raise [Heddle::Error] on another thread, or in one of its own fibers */
static VALUE scheduler_close(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (scheduler->closed) return Qnil;
    check_thread(scheduler);
    if (hd_scheduler_inside(scheduler))
        rb_raise(hd_eError, "the scheduler cannot be closed from one of its own fibers");
    return rb_ensure(run_or_cancel, self, close_reactor, self);
}

/* @return [Boolean] is it closed? */
static VALUE scheduler_closed_p(VALUE self)
{
    return HD_BOOL(hd_scheduler_get(self)->closed);
}

static void push_fiber(hd_map_node *node, void *array)
{
    rb_ary_push((VALUE)array, (VALUE)node->key);
}

/* @return [Array<Fiber>] the fibers that are parked or ready, in no particular order */
static VALUE scheduler_fibers(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    VALUE fibers = rb_ary_new_capa((long)scheduler->reactor.waits.count);
    hd_map_each(&scheduler->reactor.waits, push_fiber, (void *)fibers);
    return fibers;
}

/* @return [Integer] the number of fibers that are parked or ready */
static VALUE scheduler_size(VALUE self)
{
    return SIZET2NUM(hd_scheduler_get(self)->reactor.waits.count);
}

/* Raises an exception in a fiber of this scheduler: at once if it is parked, else when it parks next. Unlike
 * Fiber#raise it does not switch to the fiber, and any thread of the Ractor may call it.
 *
 * @param fiber [Fiber]
 * @param exception [Exception]
 * @return [true] */
static VALUE scheduler_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    if (!RTEST(rb_obj_is_fiber(fiber))) rb_raise(rb_eTypeError, "fiber: must be a Fiber");
    if (!RTEST(rb_obj_is_kind_of(exception, rb_eException)))
        rb_raise(rb_eTypeError, "exception: must be an Exception");
    hd_raise_into(hd_scheduler_get(self), fiber, (hd_pending){.exception = exception});
    return Qtrue;
}

/* Raises an exception in a fiber as interrupt does, but nothing holds it back: no mask, and no exception that is on its
 * way there. */
static VALUE scheduler_force(VALUE self, VALUE fiber, VALUE exception)
{
    hd_raise_into(hd_scheduler_get(self), fiber, (hd_pending){.exception = exception, .forced = true});
    return Qtrue;
}

/* Puts back an exception that was raised here but has not ended what it should end. It is raised again at the next
 * wait, in its old place. */
static VALUE scheduler_put_back(VALUE self, VALUE exception)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    hd_raise_later(scheduler, hd_root(scheduler), exception);
    return Qnil;
}

/* Raises an exception in a fiber for a scope, whose block has this number, as interrupt does. The fiber may be one that
 * another fiber, the root, had resumed, and it may itself have resumed a third one, which waits. */
static VALUE scheduler_interrupt_chain(VALUE self, VALUE fiber, VALUE root, VALUE exception, VALUE began)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    bool waits_in_another = fiber != root && !hd_wait_of(scheduler, fiber) && hd_resumes_another(fiber);
    hd_pending like = {.exception = exception, .began = NUM2ULL(began)};
    hd_raise_into(scheduler, waits_in_another ? root : fiber, like);
    return Qtrue;
}

/* @private Returns the number of a block that begins now: see pending.h. */
static VALUE scheduler_block_begins(VALUE self)
{
    return ULL2NUM(hd_block_begins(hd_scheduler_get(self)));
}

/* Does the fiber wait, run, or stand behind one that it has resumed? If not, it goes on only when somebody resumes it,
 * which may never happen: it may be the fiber of an Enumerator that nobody asks any longer. */
static VALUE scheduler_busy_p(VALUE self, VALUE fiber)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    bool home = fiber == scheduler->home.fiber;
    return HD_BOOL(home || fiber == rb_fiber_current() || hd_wait_of(scheduler, fiber) || hd_resumes_another(fiber));
}

/* @private
 * @return [Fiber] the first fiber of the current chain, in which each fiber was resumed by the one before */
static VALUE scheduler_root(VALUE self)
{
    return hd_root(hd_scheduler_get(self));
}

/* Takes back an exception given to interrupt that the fiber has not raised yet.
 *
 * @param fiber [Fiber]
 * @param exception [Exception]
 * @return [void] */
static VALUE scheduler_withdraw(VALUE self, VALUE fiber, VALUE exception)
{
    hd_pending_withdraw(hd_scheduler_get(self), fiber, exception);
    return Qnil;
}

/* Notes that the current fiber has made it the thread's scheduler. */
static VALUE scheduler_was_set(VALUE self)
{
    hd_scheduler_get(self)->home.outside = rb_fiber_current();
    return Qnil;
}

/* Notes that an exception has ended its task: see pending.h. */
static VALUE scheduler_left_task(VALUE self, VALUE exception)
{
    hd_pending_left_task(exception);
    return Qnil;
}

static VALUE masks_hold_again(VALUE scheduler)
{
    ((hd_scheduler *)scheduler)->masks.ended = false;
    return Qnil;
}

/* Is a fiber in a block of Thread.handle_interrupt? A fiber that was abandoned in such a block counts, too. */
static VALUE scheduler_masked_p(VALUE self)
{
    return hd_scheduler_get(self)->masks.blocks > 0 ? Qtrue : Qfalse;
}

/* Runs the block. Meanwhile the masks hold nothing back, and exceptions that they have held back before are raised: the
 * scheduler ends. */
static VALUE scheduler_without_masks(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    scheduler->masks.ended = true;
    hd_pending_deliver_all(scheduler);
    return rb_ensure(rb_yield, Qnil, masks_hold_again, (VALUE)scheduler);
}

void hd_init_scheduler_class(void)
{
    rb_define_singleton_method(hd_mHeddle, "backends", heddle_backends, 0);
    rb_define_singleton_method(hd_cScheduler, "current", scheduler_s_current, 0);
    VALUE class_methods = rb_singleton_class(hd_cScheduler);
    rb_define_singleton_method(hd_cScheduler, "of_thread", scheduler_s_of_thread, 0);
    rb_define_private_method(class_methods, "of_blocking_fiber", scheduler_s_of_blocking_fiber, 0);
    rb_define_alloc_func(hd_cScheduler, scheduler_alloc);
    rb_define_private_method(hd_cScheduler, "choose_backend", scheduler_choose_backend, 2);
    rb_define_method(hd_cScheduler, "backend", scheduler_backend, 0);
    rb_define_method(hd_cScheduler, "thread", scheduler_thread, 0);
    rb_define_method(hd_cScheduler, "run", scheduler_run, 0);
    rb_define_private_method(hd_cScheduler, "inside?", scheduler_inside_p, 0);
    rb_define_private_method(hd_cScheduler, "keep_backend", scheduler_keep_backend, 0);
    rb_define_private_method(hd_cScheduler, "pinned?", scheduler_pinned_p, 0);
    rb_define_private_method(hd_cScheduler, "masked?", scheduler_masked_p, 0);
    rb_define_private_method(hd_cScheduler, "without_masks", scheduler_without_masks, 0);
    rb_define_method(hd_cScheduler, "root", scheduler_root, 0);
    rb_define_private_method(hd_cScheduler, "task=", scheduler_set_task, 1);
    rb_define_private_method(hd_cScheduler, "interrupt_chain", scheduler_interrupt_chain, 4);
    rb_define_private_method(hd_cScheduler, "run_at_home", scheduler_run_at_home, 1);
    rb_define_private_method(hd_cScheduler, "unblocked", scheduler_unblocked, 0);
    rb_define_private_method(hd_cScheduler, "in_handler?", scheduler_in_handler_p, 0);
    rb_define_private_method(hd_cScheduler, "home?", scheduler_home_p, 1);
    rb_define_private_method(hd_cScheduler, "sent_to_thread?", scheduler_sent_to_thread_p, 1);
    rb_define_method(hd_cScheduler, "block_begins", scheduler_block_begins, 0);
    rb_define_private_method(hd_cScheduler, "busy?", scheduler_busy_p, 1);
    rb_define_private_method(hd_cScheduler, "force", scheduler_force, 2);
    rb_define_private_method(hd_cScheduler, "put_back", scheduler_put_back, 1);
    rb_define_private_method(hd_cScheduler, "left_task", scheduler_left_task, 1);
    rb_define_private_method(hd_cScheduler, "was_set", scheduler_was_set, 0);
    rb_define_private_method(hd_cScheduler, "last_homes", scheduler_last_homes, 0);
    rb_define_private_method(hd_cScheduler, "stop", scheduler_stop, 0);
    rb_define_private_method(hd_cScheduler, "open", scheduler_open, 0);
    rb_define_method(hd_cScheduler, "scheduler_close", scheduler_close, 0);
    rb_define_method(hd_cScheduler, "close", scheduler_close, 0);
    rb_define_method(hd_cScheduler, "closed?", scheduler_closed_p, 0);
    rb_define_method(hd_cScheduler, "fibers", scheduler_fibers, 0);
    rb_define_method(hd_cScheduler, "size", scheduler_size, 0);
    rb_define_method(hd_cScheduler, "interrupt", scheduler_interrupt, 2);
    rb_define_method(hd_cScheduler, "withdraw", scheduler_withdraw, 2);
}
