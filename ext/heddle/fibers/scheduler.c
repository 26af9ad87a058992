/* Gives other files their scheduler; see scheduler.h. The Ruby class is in scheduler_class.c. */
#include "scheduler.h"

#include <ruby/debug.h>

#include "os/kept_backend.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "warm_stacks.h"

VALUE hd_cScheduler;

static VALUE cRactor;
static bool main_threads_move; /* those of the main Ractor */
static ID id_current, id_main;
static ID id_scheduler; /* where a thread holds the scheduler that runs in it */

/* -- the IO table of a Ractor -------------------------------------------------------------------------------- */

typedef struct {
    hd_map map;
    unsigned fork_generation;
} io_table;

static void free_io_table(void *pointer)
{
    io_table *table = pointer;
    hd_map_free(&table->map);
    free(table);
}

static const struct rb_ractor_local_storage_type io_table_type = {NULL, free_io_table};
static rb_ractor_local_key_t io_table_key;

hd_map *hd_io_table(void)
{
    io_table *table = rb_ractor_local_storage_ptr(io_table_key);
    if (!table) {
        table = calloc(1, sizeof(*table));
        if (!table || hd_map_init(&table->map) < 0) rb_memerror();
        table->fork_generation = hd_fork_generation;
        rb_ractor_local_storage_ptr_set(io_table_key, table);
    }
    if (hd_forked_since(table->fork_generation)) { /* its records were on the stacks of the parent's fibers */
        hd_map_forget(&table->map);
        table->fork_generation = hd_fork_generation;
    }
    return &table->map;
}

/* -- access -------------------------------------------------------------------------------------------------- */

void hd_scheduler_check_fork(hd_scheduler *scheduler)
{
    if (RB_LIKELY(!hd_forked_since(scheduler->reactor.generation))) return;
    scheduler->forget_parent(scheduler);
    hd_io_table(); /* forgets the records of the parent's fibers */
}

/* Every hook and every direct operation calls this: rb_check_typeddata would cost five times as much. */
hd_scheduler *hd_scheduler_get(VALUE self)
{
    bool own = RB_LIKELY(hd_data_type(self) == &hd_scheduler_type);
    hd_scheduler *scheduler = own ? RTYPEDDATA_GET_DATA(self) : rb_check_typeddata(self, &hd_scheduler_type);
    hd_scheduler_check_fork(scheduler);
    return scheduler;
}

/* Does the caller run in the main Ractor? A native thread of the main Ractor stays with its Ruby thread, but not
 * under RUBY_MN_THREADS; in other Ractors Ruby's threads migrate. Only a pinned thread may have a ring that is tied
 * to it. */
bool hd_in_main_ractor(void)
{
    return rb_funcall(cRactor, id_current, 0) == rb_funcall(cRactor, id_main, 0);
}

bool hd_threads_are_pinned(void)
{
    return !main_threads_move && hd_in_main_ractor();
}

static void open_backend(hd_scheduler *scheduler)
{
    scheduler->thread = rb_thread_current();
    hd_scheduler_runs(scheduler, true);
    hd_warm_stacks_open(scheduler);
    scheduler->reactor.ios = hd_io_table();
    bool pinned = hd_threads_are_pinned();
    scheduler->keeps_backend &= pinned;
    hd_backend *kept = pinned ? hd_kept_backend_take(scheduler->ops) : NULL;
    if (kept) {
        hd_reactor_attach(&scheduler->reactor, scheduler->ops, kept);
        return;
    }
    int error = hd_reactor_open(&scheduler->reactor, scheduler->ops, pinned);
    /* memory or descriptors ran out since the probe */
    const hd_backend_ops *next = RTEST(rb_attr_get(scheduler->self, rb_intern("@forced"))) ? NULL : scheduler->ops;
    while (error && next && (next = hd_backend_after(next))) {
        scheduler->ops = next;
        error = hd_reactor_open(&scheduler->reactor, next, pinned);
    }
    if (error) rb_syserr_fail(-error, "heddle: cannot open the event backend");
}

static void thread_ends(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE class)
{
    (void)event, (void)data, (void)self, (void)method, (void)class;
    hd_kept_backend_close();
}

void hd_scheduler_close_backend(hd_scheduler *scheduler)
{
    static bool ends_are_told; /* for the main Ractor's threads; those of other Ractors are not pinned */
    if (!scheduler->keeps_backend || !scheduler->reactor.backend) {
        hd_reactor_close(&scheduler->reactor);
        return;
    }
    if (!ends_are_told) rb_add_event_hook(thread_ends, RUBY_EVENT_THREAD_END, Qnil);
    ends_are_told = true;
    hd_kept_backend_put(scheduler->reactor.ops, hd_reactor_detach(&scheduler->reactor));
}

hd_scheduler *hd_scheduler_ready(VALUE self)
{
    hd_scheduler *scheduler = hd_scheduler_get(self);
    if (RB_UNLIKELY(!scheduler->reactor.backend)) {
        if (scheduler->closed) rb_raise(hd_eError, "the scheduler is closed");
        if (!scheduler->ops) rb_raise(hd_eError, "the scheduler is not initialized");
        open_backend(scheduler);
    }
    return scheduler;
}

static hd_scheduler *own(VALUE scheduler)
{
    return hd_data_type(scheduler) == &hd_scheduler_type ? hd_scheduler_get(scheduler) : NULL;
}

hd_scheduler *hd_scheduler_of_thread(void)
{
    return own(rb_fiber_scheduler_get());
}

hd_scheduler *hd_scheduler_here(void)
{
    return own(rb_fiber_scheduler_current());
}

bool hd_scheduler_foreign(const hd_scheduler *scheduler)
{
    return scheduler->thread != rb_thread_current();
}

bool hd_scheduler_turns_here(const hd_scheduler *scheduler)
{
    return scheduler->reactor.backend && !hd_scheduler_foreign(scheduler);
}

bool hd_scheduler_inside(const hd_scheduler *scheduler)
{
    return scheduler->home.waits || scheduler->running.scheduled;
}

void hd_scheduler_runs(hd_scheduler *scheduler, bool runs)
{
    VALUE thread = scheduler->thread;
    if (NIL_P(thread) || OBJ_FROZEN(thread)) return;
    if (runs)
        rb_ivar_set(thread, id_scheduler, scheduler->self);
    else if (rb_attr_get(thread, id_scheduler) == scheduler->self)
        rb_ivar_set(thread, id_scheduler, Qnil);
}

hd_scheduler *hd_scheduler_in(VALUE thread)
{
    VALUE self = rb_attr_get(thread, id_scheduler);
    return NIL_P(self) ? NULL : hd_scheduler_get(self);
}

void hd_init_scheduler(void)
{
    main_threads_move = hd_ruby_moves_threads();
    cRactor = rb_path2class("Ractor");
    rb_gc_register_mark_object(cRactor);
    id_current = rb_intern("current");
    id_main = rb_intern("main");
    id_scheduler = rb_intern("__heddle_scheduler__");
    io_table_key = rb_ractor_local_storage_ptr_newkey(&io_table_type);
    hd_cScheduler = rb_define_class_under(hd_mHeddle, "Scheduler", rb_cObject);
}
