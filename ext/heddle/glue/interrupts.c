/* See interrupts.h. */
#include "interrupts.h"

#include "park.h"

static VALUE cFiber, cUncaughtThrow, probe; /* probe: a Mutex that nobody holds */
static ID id_new, id_aset, id_main, id_fiber, id_scopes, id_owner, id_heddle_scope;

static VALUE check_ints(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)argv, (void)blockarg;
    rb_thread_check_ints();
    return Qnil;
}

/* Raises what the thread was sent, unless one of its fibers is in a handle_interrupt that holds it back: the masks are
 * the thread's. A fiber that is parked there must not make the thread immortal, so a kill looks past them. */
void hd_interrupts_check(hd_scheduler *scheduler)
{
    scheduler->check_interrupts = scheduler->interrupted = false;
    rb_thread_check_ints();
    if (!RTEST(rb_funcall(rb_cThread, rb_intern("pending_interrupt?"), 0))) return;
    VALUE mask = rb_hash_new();
    rb_hash_aset(mask, rb_cInteger, ID2SYM(rb_intern("immediate")));
    rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &mask, check_ints, Qnil);
}

static bool is_exception(VALUE error)
{
    return RTEST(rb_obj_is_kind_of(error, rb_eException));
}

/* -- the fiber of the loop ----------------------------------------------------------------------------------- */

typedef struct {
    VALUE owner, found;
} scope_search;

static int match_owner(VALUE scope, VALUE unused, VALUE pointer)
{
    (void)unused;
    scope_search *search = (void *)pointer;
    if (rb_attr_get(scope, id_owner) != search->owner) return ST_CONTINUE;
    search->found = scope;
    return ST_STOP;
}

/* The tasks that a handler starts belong to the main block. */
static void enter_main_scope(const hd_scheduler *scheduler)
{
    VALUE main = rb_attr_get(scheduler->self, id_main);
    scope_search search = {NIL_P(main) ? Qnil : rb_attr_get(main, id_fiber), Qnil};
    if (NIL_P(search.owner)) return;
    rb_hash_foreach(rb_attr_get(scheduler->self, id_scopes), match_owner, (VALUE)&search);
    rb_funcall(cFiber, id_aset, 2, ID2SYM(id_heddle_scope), search.found);
}

static VALUE turn_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    VALUE fiber = rb_fiber_current();
    enter_main_scope(scheduler);
    while (scheduler->loop == fiber) hd_loop_step(scheduler);
    return Qnil;
}

/* What was raised in the loop has no line of the program, or those of a handler: where Heddle runs belongs to it. */
static VALUE extend_backtrace(VALUE pointer)
{
    VALUE error = ((VALUE *)pointer)[0], caller = ((VALUE *)pointer)[1];
    VALUE own = rb_funcall(error, rb_intern("backtrace"), 0), below = rb_funcall(caller, rb_intern("backtrace"), 0);
    if (!RB_TYPE_P(own, T_ARRAY) || !RB_TYPE_P(below, T_ARRAY)) return Qnil;
    return rb_funcall(error, rb_intern("set_backtrace"), 1, rb_ary_plus(own, below));
}

static void raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    int ignored;
    VALUE arguments[] = {error, scheduler->runner};
    rb_set_errinfo(Qnil);
    if (RTEST(rb_obj_is_kind_of(error, rb_const_get(hd_mHeddle, rb_intern("Cancelled"))))) return;
    if (!NIL_P(scheduler->runner)) rb_protect(extend_backtrace, (VALUE)arguments, &ignored);
    rb_set_errinfo(Qnil);
    hd_raise_at_home(scheduler, error);
}

static VALUE loop_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_scheduler *scheduler = RTYPEDDATA_GET_DATA(self);
    VALUE fiber = rb_fiber_current(), runner = scheduler->runner;
    unsigned generation = hd_fork_generation;
    do {
        int state = 0;
        rb_protect(turn_loop, (VALUE)scheduler, &state);
        bool child = hd_forked_since(generation);
        if (child && !state) rb_funcall(self, rb_intern("go_on_in_child"), 1, runner);
        if (child) rb_jump_tag(state); /* there this is the root fiber: Ruby exits */
        if (!state) continue;
        if (!is_exception(rb_errinfo())) {
            if (scheduler->loop == fiber) scheduler->loop = Qnil;
            rb_jump_tag(state); /* a kill */
        }
        raise_at_home(scheduler, rb_errinfo());
    } while (scheduler->loop == fiber);
    hd_drop_put_off(scheduler);
    return Qnil;
}

static VALUE make_fiber(rb_block_call_func_t body, VALUE self)
{
    VALUE block = rb_proc_new(body, self), fiber = rb_funcall_with_block(cFiber, id_new, 0, NULL, block);
    RB_GC_GUARD(block);
    return fiber;
}

static VALUE make(VALUE self)
{
    return make_fiber(loop_body, self);
}

void hd_loop_make(hd_scheduler *scheduler)
{
    int state = 0;
    VALUE error = rb_errinfo();
    scheduler->loop = Qnil;
    VALUE fiber = rb_protect(make, scheduler->self, &state);
    if (state)
        rb_set_errinfo(error); /* no memory for it: the home fiber turns the loop */
    else
        scheduler->loop = fiber;
}

/* -- fibers for handlers -------------------------------------------------------------------------------------- */

static VALUE lock_and_unlock(VALUE mutex)
{
    rb_mutex_lock(mutex);
    return rb_mutex_unlock(mutex);
}

/* (Only the refusal to lock a Mutex tells.) */
static bool in_handler(const hd_scheduler *scheduler)
{
    if (NIL_P(scheduler->runner)) return false;
    int state = 0;
    VALUE error = rb_errinfo();
    rb_protect(lock_and_unlock, probe, &state);
    if (!state) return false;
    if (!rb_obj_is_kind_of(rb_errinfo(), rb_eThreadError)) rb_jump_tag(state);
    rb_set_errinfo(error);
    return true;
}

static VALUE go_home(VALUE scheduler)
{
    hd_transfer_to(((hd_scheduler *)scheduler)->home);
    return Qnil;
}

void hd_make_ordered_fiber(hd_scheduler *scheduler)
{
    VALUE options = rb_hash_new(), body = scheduler->order;
    rb_hash_aset(options, ID2SYM(rb_intern("storage")), scheduler->order_storage);
    scheduler->order = scheduler->order_storage = Qnil;
    scheduler->order = rb_funcall_with_block_kw(cFiber, id_new, 1, &options, body, RB_PASS_KEYWORDS);
}

static VALUE make_at_home(hd_scheduler *scheduler, VALUE body)
{
    scheduler->order_storage = rb_funcall(rb_fiber_current(), rb_intern("storage"), 0);
    scheduler->order = body;
    hd_park_ready(scheduler, true, go_home, (VALUE)scheduler);
    VALUE made = scheduler->order;
    scheduler->order = Qnil;
    return made;
}

VALUE hd_new_fiber(hd_scheduler *scheduler, VALUE body)
{
    bool at_home = in_handler(scheduler) && scheduler->home_waits && NIL_P(scheduler->order) &&
                   rb_fiber_current() != scheduler->home;
    VALUE made = at_home ? make_at_home(scheduler, body) : Qnil;
    return RTEST(rb_obj_is_fiber(made)) ? made : rb_funcall_with_block(cFiber, id_new, 0, NULL, body);
}

/* -- home ---------------------------------------------------------------------------------------------------- */

static VALUE run_here(VALUE scheduler)
{
    hd_run_here((void *)scheduler);
    return Qnil;
}

static VALUE home_body(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_scheduler *scheduler = RTYPEDDATA_GET_DATA(self);
    int state = 0, ignored;
    enter_main_scope(scheduler);
    rb_protect(run_here, (VALUE)scheduler, &state);
    if (!state) return Qnil;
    VALUE arguments[] = {rb_errinfo(), scheduler->runner};
    if (is_exception(arguments[0]) && arguments[0] != scheduler->raised) {
        rb_set_errinfo(Qnil);
        rb_protect(extend_backtrace, (VALUE)arguments, &ignored);
        rb_set_errinfo(arguments[0]);
    }
    rb_jump_tag(state);
}

static VALUE resume(VALUE fiber)
{
    return rb_fiber_resume(fiber, 0, NULL);
}

/* A signal handler has thrown: it is caught out here, or nowhere. */
static VALUE throw_again(VALUE unused, VALUE error)
{
    (void)unused;
    rb_throw_obj(rb_funcall(error, rb_intern("tag"), 0), rb_funcall(error, rb_intern("value"), 0));
}

static VALUE resume_home(VALUE home)
{
    return rb_rescue2(resume, home, throw_again, Qnil, cUncaughtThrow, (VALUE)0);
}

static VALUE forget_runner(VALUE scheduler)
{
    ((hd_scheduler *)scheduler)->runner = ((hd_scheduler *)scheduler)->raised = Qnil;
    return Qnil;
}

void hd_run_with_signals(hd_scheduler *scheduler)
{
    scheduler->runner = rb_fiber_current();
    VALUE home = make_fiber(home_body, scheduler->self);
    rb_ensure(resume_home, home, forget_runner, (VALUE)scheduler);
    RB_GC_GUARD(home);
}

void hd_init_interrupts(void)
{
    id_new = rb_intern("new");
    id_aset = rb_intern("[]=");
    id_main = rb_intern("@main");
    id_fiber = rb_intern("@fiber");
    id_scopes = rb_intern("@scopes");
    id_owner = rb_intern("@owner");
    id_heddle_scope = rb_intern("heddle_scope");
    cFiber = rb_path2class("Fiber");
    cUncaughtThrow = rb_path2class("UncaughtThrowError");
    rb_gc_register_mark_object(cFiber);
    rb_gc_register_mark_object(cUncaughtThrow);
    probe = rb_mutex_new();
    rb_gc_register_mark_object(probe);
}
