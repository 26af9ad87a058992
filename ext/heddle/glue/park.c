/* Suspending and resuming fibers (park.h). Every switch is inside an ensure that unlinks the wait record, so a
 * raise, a kill or an interrupt at the switch leaves nothing behind. */
#include "park.h"

#include <errno.h>
#include <poll.h>

#include "deadlock.h"
#include "hand_over.h"
#include "interrupts.h"
#include "timeout.h"

typedef struct {
    hd_wait wait;
    hd_scheduler *scheduler;
    hd_interest *interests;
    size_t count, armed;
    hd_job **jobs;
    size_t jobs_count;
    VALUE (*switch_away)(VALUE);
    VALUE argument;
    bool over; /* it has ended as it was to end: no exception came at the switch */
} parking;

enum { LIMIT_MAX = 1000 * 1000 * 1000 }; /* seconds: 30 years */

int64_t hd_deadline_from(VALUE timeout)
{
    if (NIL_P(timeout)) return HD_NO_DEADLINE;
    if (RB_FLOAT_TYPE_P(timeout) && RFLOAT_VALUE(timeout) > LIMIT_MAX) return HD_NO_DEADLINE; /* also infinity */
    struct timespec interval = rb_time_timespec_interval(timeout);
    if (interval.tv_sec >= INT64_MAX / HD_NS_PER_SECOND - 1) return HD_NO_DEADLINE;
    return hd_clock_deadline(hd_clock_now(), interval.tv_sec * HD_NS_PER_SECOND + interval.tv_nsec);
}

int64_t hd_deadline_of_limit(VALUE limit)
{
    if (!RTEST(rb_obj_is_kind_of(limit, rb_cNumeric))) return hd_deadline_from(limit); /* nil, or TypeError */
    if (RB_TYPE_P(limit, T_BIGNUM)) return RBIGNUM_POSITIVE_P(limit) ? HD_NO_DEADLINE : hd_clock_now();
    if (RB_INTEGER_TYPE_P(limit) && FIX2LONG(limit) > LIMIT_MAX) return HD_NO_DEADLINE;
    bool over = RB_FLOAT_TYPE_P(limit) ? !(RFLOAT_VALUE(limit) > 0) : RTEST(rb_funcall(limit, '<', 1, INT2FIX(0)));
    return over ? hd_clock_now() : hd_deadline_from(limit);
}

/* -- the turn ------------------------------------------------------------------------------------------------ */

typedef struct {
    hd_reactor *reactor;
    int64_t timeout_ns;
    bool ran;
} poll_call;

static void *poll_without_gvl(void *pointer)
{
    poll_call *call = pointer;
    call->ran = true;
    hd_reactor_poll_nogvl(call->reactor, call->timeout_ns);
    return NULL;
}

/* Runs in other threads and in the timer thread. */
static void unblock_poll(void *pointer)
{
    hd_scheduler *scheduler = pointer;
    scheduler->interrupted = true;
    scheduler->reactor.ops->wake(scheduler->reactor.backend);
}

static void reap(hd_scheduler *scheduler)
{
    hd_reactor_reap(&scheduler->reactor);
    hd_inbox_drain(&scheduler->inbox);
}

static void poll_now(hd_scheduler *scheduler)
{
    hd_reactor_poll_nogvl(&scheduler->reactor, 0);
    reap(scheduler);
}

/* Ruby 4.0 looks at the target's memory when control comes back (cont.c, fiber_switch), and by then the target may
 * have ended: this frame keeps it alive. */
void hd_transfer_to(VALUE fiber)
{
    rb_fiber_transfer(fiber, 0, NULL);
    RB_GC_GUARD(fiber);
}

static void switch_to(hd_scheduler *scheduler, VALUE fiber, VALUE root)
{
    scheduler->root = root;
    hd_transfer_to(fiber);
}

static void raise_fatal(hd_scheduler *scheduler)
{
    VALUE fatal = scheduler->raised = scheduler->fatal;
    scheduler->fatal = Qnil;
    rb_exc_raise(fatal);
}

/* The fiber that turns the loop, if home waits for that. */
static VALUE loop_of(const hd_scheduler *scheduler)
{
    return NIL_P(scheduler->loop) ? scheduler->home : scheduler->loop;
}

/* Interrupts surface where the loop turns. Whatever the caller waits for may be there afterwards. */
static void look_for_interrupts(hd_scheduler *scheduler, VALUE current)
{
    bool fatal = !NIL_P(scheduler->fatal);
    if (fatal && current == scheduler->home) raise_fatal(scheduler);
    VALUE where = fatal ? scheduler->home : loop_of(scheduler);
    if (!scheduler->home_waits || current == where) {
        hd_interrupts_check(scheduler);
        return;
    }
    scheduler->check_interrupts = true;
    switch_to(scheduler, where, where);
}

/* One turn: waits in the kernel until something is ready. */
static void turn(hd_scheduler *scheduler, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    poll_call call = {reactor, hd_reactor_timeout(reactor), false};
    if (call.timeout_ns == 0) {
        poll_now(scheduler);
        return;
    }
    int64_t patience_until_ns = HD_NO_DEADLINE;
    if (call.timeout_ns == HD_NO_DEADLINE) {
        call.timeout_ns = hd_deadlock_patience(scheduler);
        if (call.timeout_ns != HD_NO_DEADLINE) patience_until_ns = hd_clock_now() + call.timeout_ns;
    }
    reactor->asleep = true;
    rb_nogvl(poll_without_gvl, &call, unblock_poll, scheduler, RB_NOGVL_INTR_FAIL | RB_NOGVL_UBF_ASYNC_SAFE);
    reactor->asleep = false;
    reap(scheduler);
    /* rb_nogvl returns at once for any interrupt, also for a time slice that is over, which rb_thread_interrupted does
     * not see: another thread waits for the GVL. */
    if (!call.ran || scheduler->interrupted || rb_thread_interrupted(scheduler->thread)) {
        look_for_interrupts(scheduler, current);
        return;
    }
    if (!hd_list_empty(&reactor->ready))
        scheduler->patience_ms = 0;
    else if (patience_until_ns != HD_NO_DEADLINE && hd_clock_now() >= patience_until_ns)
        hd_deadlock_check(scheduler); /* not sooner: a thread that was about to run has run meanwhile */
}

/* -- switching ----------------------------------------------------------------------------------------------- */

/* Gives control to the next ready fiber, or turns the loop. Returns when control comes back, for whatever reason.
 * own: the wait of the calling fiber, or NULL when it is the one of the loop, or home. (Those have one themselves while
 * a handler or a finalizer, which Ruby may run at every switch, waits there.) */
static void switch_or_turn(hd_scheduler *scheduler, hd_wait *own, VALUE current)
{
    hd_reactor *reactor = &scheduler->reactor;
    if (RB_UNLIKELY(scheduler->check_interrupts || rb_thread_interrupted(scheduler->thread))) {
        if (own) scheduler->root = (VALUE)own->root;
        look_for_interrupts(scheduler, current);
        return;
    }
    VALUE loop = loop_of(scheduler);
    bool polls = current != scheduler->home || loop == current; /* a signal would be handled in the fiber it came in */
    bool due = hd_reactor_poll_due(reactor);
    if (due && polls) poll_now(scheduler);
    hd_wait *next = due && !polls ? NULL : hd_reactor_next(reactor);
    if (!next && polls && !reactor->slept) { /* busy: more has likely come meanwhile: look before going to sleep */
        poll_now(scheduler);
        next = hd_reactor_next(reactor);
    }
    if (next == own && own) return;
    if (next)
        switch_to(scheduler, (VALUE)hd_wait_fiber(next), (VALUE)next->root);
    else if (!scheduler->home_waits || loop == current)
        turn(scheduler, current);
    else
        switch_to(scheduler, loop, loop);
}

void hd_loop_step(hd_scheduler *scheduler)
{
    VALUE current = rb_fiber_current();
    if (RB_UNLIKELY(!scheduler->home_waits || !NIL_P(scheduler->fatal))) {
        switch_to(scheduler, scheduler->home, scheduler->home);
        return;
    }
    switch_or_turn(scheduler, NULL, current);
}

/* -- parking ------------------------------------------------------------------------------------------------- */

static VALUE until_woken(VALUE pointer)
{
    parking *parking = (void *)pointer;
    while (parking->wait.state != HD_WAIT_DONE && !hd_wait_void(&parking->wait)) {
        switch_or_turn(parking->scheduler, &parking->wait, (VALUE)hd_wait_fiber(&parking->wait));
        hd_scheduler_check_fork(parking->scheduler);
    }
    parking->over = true;
    return Qnil;
}

static VALUE away_until_woken(VALUE pointer)
{
    parking *parking = (void *)pointer;
    VALUE result = parking->switch_away(parking->argument);
    hd_scheduler_check_fork(parking->scheduler);
    until_woken(pointer);
    return result;
}

/* Fiber#raise has come before a cancel that was on its way: that one is not lost. (That an IO was closed tells only the
 * operation that is over now.) */
static void keep_overtaken(parking *parking)
{
    VALUE exception = (VALUE)parking->wait.exception;
    if (parking->wait.state != HD_WAIT_READY || !exception || hd_wait_void(&parking->wait)) return;
    if (RTEST(rb_obj_is_kind_of(exception, rb_eIOError)) || RTEST(rb_obj_is_kind_of(exception, rb_eSystemCallError)))
        return;
    hd_put_off(parking->scheduler, (VALUE)parking->wait.root, exception);
}

/* Takes back what has not been answered. Another thread may close one of these IOs at any moment, also while this one
 * computes, and the peer is to see it: the kernel must let go of the file now. */
static void disarm(parking *parking)
{
    const hd_reactor *reactor = &parking->scheduler->reactor;
    bool held = false;
    for (size_t i = 0; i < parking->armed; i++) {
        held |= parking->interests[i].token != 0;
        hd_interest_disarm(&parking->interests[i]);
    }
    if (RB_UNLIKELY(held) && reactor->backend && !rb_thread_alone()) reactor->ops->release_files(reactor->backend);
}

static VALUE unpark(VALUE pointer)
{
    parking *parking = (void *)pointer;
    hd_scheduler_check_fork(parking->scheduler);
    keep_overtaken(parking);
    parking->scheduler->root = (VALUE)parking->wait.root;
    parking->scheduler->root_scheduled = parking->wait.scheduled;
    disarm(parking);
    for (size_t i = 0; i < parking->jobs_count; i++) hd_job_set_wait(parking->jobs[i], NULL);
    hd_wait_end(&parking->wait);
    /* Woken with a lock or an item, but a Fiber#raise, a kill or an interrupt was faster. */
    bool unblocked = parking->wait.wake == HD_WOKEN_BY_UNBLOCK && !hd_wait_void(&parking->wait);
    if (RB_UNLIKELY(!parking->over) && unblocked) hd_pass_on(parking->scheduler, &parking->wait);
    return Qnil;
}

static void raise_delivered(hd_scheduler *scheduler, hd_wait *wait)
{
    if (wait->exception) rb_exc_raise((VALUE)wait->exception);
    hd_timeouts_raise_expired(scheduler);
}

void hd_raise_put_off(hd_scheduler *scheduler, hd_mask strictest)
{
    VALUE root = hd_root(scheduler), fiber = rb_fiber_current();
    for (VALUE one = root;; one = fiber) {
        VALUE exception = NIL_P(scheduler->pending) ? Qnil : rb_hash_lookup(scheduler->pending, one);
        if (!NIL_P(exception) && hd_interrupt_mask(scheduler, (hd_struck){root, fiber}, exception) <= strictest) {
            rb_hash_delete(scheduler->pending, one);
            if (RHASH_EMPTY_P(scheduler->pending)) scheduler->pending = Qnil;
            rb_exc_raise(exception);
        }
        if (one == fiber) return;
    }
}

/* An exception that could not be delivered when it came (the fiber was not parked) is raised now. */
static void raise_pending(hd_scheduler *scheduler)
{
    if (scheduler->expired) hd_timeouts_raise_expired(scheduler);
    if (RB_UNLIKELY(!NIL_P(scheduler->pending))) hd_raise_put_off(scheduler, HD_MASK_ON_BLOCKING);
}

/* A handler that waits in the fiber of the loop, or in one that it has resumed there, leaves the loop to another: home
 * makes one. (A fiber that was made in a handler would never see a signal: Ruby takes it for the handler.) */
static VALUE find_root(hd_scheduler *scheduler)
{
    VALUE root = hd_root(scheduler);
    if (RB_UNLIKELY(root == scheduler->loop)) scheduler->loop = Qnil;
    return root;
}

static void begin(parking *parking, hd_wait_kind kind, VALUE subject, int64_t deadline_ns)
{
    hd_scheduler *scheduler = parking->scheduler;
    VALUE root = find_root(scheduler);
    raise_pending(scheduler);
    int error = hd_wait_begin(&parking->wait, &scheduler->reactor, kind, (hd_word)rb_fiber_current(), deadline_ns);
    if (error) rb_syserr_fail(-error, "heddle: timer");
    scheduler->parks++;
    parking->wait.subject = (hd_word)subject;
    hd_wait_for_root(&parking->wait, (hd_word)root);
    parking->wait.scheduled = scheduler->root_scheduled;
}

static void begin_ready(parking *parking, bool front)
{
    hd_scheduler *scheduler = parking->scheduler;
    VALUE root = find_root(scheduler);
    hd_wait_begin_ready(&parking->wait, &scheduler->reactor, (hd_word)rb_fiber_current(), front);
    scheduler->parks++;
    hd_wait_for_root(&parking->wait, (hd_word)root);
    parking->wait.scheduled = scheduler->root_scheduled;
}

static hd_wake finish(parking *parking)
{
    rb_ensure(until_woken, (VALUE)parking, unpark, (VALUE)parking);
    if (RB_UNLIKELY(parking->wait.wake == HD_WOKEN_BY_EXCEPTION))
        raise_delivered(parking->scheduler, &parking->wait);
    return parking->wait.wake;
}

hd_wake hd_park(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject, int64_t deadline_ns)
{
    parking parking = {.scheduler = scheduler};
    begin(&parking, kind, subject, deadline_ns);
    hd_wake wake = finish(&parking);
    RB_GC_GUARD(subject);
    return wake;
}

static int park_armed(parking *parking, hd_wait_kind kind, VALUE subject, int64_t deadline_ns)
{
    begin(parking, kind, subject, deadline_ns);
    parking->wait.interests = parking->interests;
    parking->wait.interests_count = parking->count;
    int error = 0;
    while (parking->armed < parking->count && !error) {
        hd_interest *interest = &parking->interests[parking->armed];
        error = hd_interest_arm(interest, &parking->wait, interest->io, interest->fd, interest->events);
        if (!error) parking->armed++;
    }
    if (error) {
        unpark((VALUE)parking);
        return error;
    }
    for (size_t i = 0; i < parking->jobs_count; i++) hd_job_set_wait(parking->jobs[i], &parking->wait);
    return finish(parking) == HD_WOKEN_BY_TIMEOUT ? 0 : 1;
}

static int park_interests(hd_scheduler *scheduler, hd_wait_kind kind, VALUE subject, hd_interest *interests,
                          size_t count, int64_t deadline_ns)
{
    parking parking = {.scheduler = scheduler, .interests = interests, .count = count};
    return park_armed(&parking, kind, subject, deadline_ns);
}

int hd_park_ios(hd_scheduler *scheduler, hd_interest *interests, size_t count, int64_t deadline_ns)
{
    return park_interests(scheduler, HD_WAIT_FOR_SELECT, Qnil, interests, count, deadline_ns);
}

int hd_park_process(hd_scheduler *scheduler, VALUE pid, int pidfd)
{
    hd_interest interest = {.fd = pidfd, .events = POLLIN, .io = (hd_word)Qnil};
    return park_interests(scheduler, HD_WAIT_FOR_PROCESS, pid, &interest, 1, HD_NO_DEADLINE);
}

int hd_park_io(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns, bool *at_once)
{
    hd_interest interest = {.fd = fd, .events = (short)events, .io = (hd_word)io};
    int result = park_interests(scheduler, HD_WAIT_FOR_IO, io, &interest, 1, deadline_ns);
    RB_GC_GUARD(io);
    if (at_once) *at_once = interest.at_once;
    if (result > 0 && interest.unpollable) return -EPERM; /* as epoll says it */
    return result > 0 ? interest.revents : result;
}

static void *run_job(void *job)
{
    hd_job_run_inline(job);
    return job;
}

void hd_run_job_here(hd_job *job)
{
    /* (It does not begin when an interrupt is pending, which is not to be raised here.) */
    if (!rb_thread_call_without_gvl2(run_job, job, NULL, NULL)) run_job(job);
}

void hd_park_worker(hd_scheduler *scheduler, hd_job *job, VALUE subject)
{
    parking parking = {.scheduler = scheduler};
    begin(&parking, HD_WAIT_FOR_WORKER, subject, HD_NO_DEADLINE);
    if (hd_job_submit(job, &scheduler->inbox, &parking.wait) == 0) {
        finish(&parking);
    }
    else {
        unpark((VALUE)&parking);
        hd_run_job_here(job);
    }
    RB_GC_GUARD(subject);
}

int hd_park_connecting(hd_scheduler *scheduler, VALUE host, hd_interest *interests, size_t count, hd_job **jobs,
                       size_t jobs_count, int64_t deadline_ns)
{
    parking parking = {.scheduler = scheduler, .interests = interests, .count = count, .jobs = jobs,
                       .jobs_count = jobs_count};
    int result = park_armed(&parking, count ? HD_WAIT_FOR_SELECT : HD_WAIT_FOR_WORKER, host, deadline_ns);
    RB_GC_GUARD(host);
    return result;
}

void hd_park_turn(hd_scheduler *scheduler)
{
    parking parking = {.scheduler = scheduler};
    raise_pending(scheduler);
    begin_ready(&parking, false);
    finish(&parking);
}

VALUE hd_park_ready(hd_scheduler *scheduler, bool front, VALUE (*switch_away)(VALUE), VALUE argument)
{
    parking parking = {.scheduler = scheduler, .switch_away = switch_away, .argument = argument};
    hd_timeouts_raise_overdue(scheduler);
    begin_ready(&parking, front);
    VALUE result = rb_ensure(away_until_woken, (VALUE)&parking, unpark, (VALUE)&parking);
    if (RB_UNLIKELY(parking.wait.wake == HD_WOKEN_BY_EXCEPTION)) raise_delivered(scheduler, &parking.wait);
    return result;
}

/* -- the home loop ------------------------------------------------------------------------------------------- */

static VALUE home_loop(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    hd_reactor *reactor = &scheduler->reactor;
    unsigned generation = reactor->generation;
    scheduler->stopped = false;
    while (reactor->waits.count > 0 && !scheduler->stopped) {
        if (!NIL_P(scheduler->fatal)) raise_fatal(scheduler);
        if (RB_UNLIKELY(NIL_P(scheduler->loop) && !NIL_P(scheduler->runner))) hd_loop_make(scheduler);
        if (RB_UNLIKELY(!NIL_P(scheduler->order))) hd_make_ordered_fiber(scheduler);
        switch_or_turn(scheduler, NULL, scheduler->home);
        hd_scheduler_check_fork(scheduler);
        if (reactor->generation != generation) break; /* the child of a fork has nothing to wait for */
    }
    if (!NIL_P(scheduler->fatal)) raise_fatal(scheduler);
    return Qnil;
}

static VALUE leave_home(VALUE pointer)
{
    hd_scheduler *scheduler = (void *)pointer;
    scheduler->root = scheduler->home;
    scheduler->home = scheduler->loop = Qnil;
    scheduler->home_waits = scheduler->root_scheduled = false;
    return Qnil;
}

void hd_run_here(hd_scheduler *scheduler)
{
    scheduler->home = scheduler->last_home = rb_fiber_current();
    scheduler->home_waits = true;
    rb_ensure(home_loop, (VALUE)scheduler, leave_home, (VALUE)scheduler);
}

void hd_run_until_idle(hd_scheduler *scheduler)
{
    if (hd_scheduler_inside(scheduler)) rb_raise(hd_eError, "the scheduler is running already");
    if (scheduler->thread == rb_thread_main())
        hd_run_with_signals(scheduler);
    else
        hd_run_here(scheduler);
}

/* -- waking -------------------------------------------------------------------------------------------------- */

hd_wait *hd_wait_of(hd_scheduler *scheduler, VALUE fiber)
{
    const hd_map *waits = &scheduler->reactor.waits;
    hd_map_node *node = hd_map_find(waits, (hd_word)fiber), *later = node;
    while (later && (later = hd_map_find_next(waits, later))) node = later; /* a handler's, at a switch of the other */
    return node ? HD_CONTAINER_OF(node, hd_wait, fiber_node) : NULL;
}

VALUE hd_root(const hd_scheduler *scheduler)
{
    return NIL_P(scheduler->root) ? rb_fiber_current() : scheduler->root;
}

hd_wait *hd_wait_of_chain(hd_scheduler *scheduler, VALUE root)
{
    hd_wait *wait = hd_wait_of(scheduler, root);
    if (wait) return wait;
    hd_map_node *node = hd_map_find(&scheduler->reactor.chains, (hd_word)root);
    return node ? HD_CONTAINER_OF(node, hd_wait, root_node) : NULL;
}

bool hd_wake_wait(hd_wait *wait, hd_wake wake, VALUE exception)
{
    hd_reactor *reactor = wait->reactor;
    bool settled = wake == HD_WOKEN_BY_EXCEPTION ? hd_wait_settle_exception(wait, (hd_word)exception)
                                                 : hd_wait_settle(wait, wake);
    if (settled) hd_reactor_wake_if_asleep(reactor);
    return settled;
}

/* A wake for an IO that is on its way gives way to an exception: nothing has been done yet, and the fiber may never
 * wait again (it tries a closed IO in a loop). Others stay: who was given a lock or an element goes on with it. */
static bool change_wake(hd_wait *wait, VALUE exception)
{
    bool ready = wait->wake == HD_WOKEN_BY_EVENT && (wait->kind == HD_WAIT_FOR_IO || wait->kind == HD_WAIT_FOR_SELECT);
    bool closed = wait->wake == HD_WOKEN_BY_EXCEPTION && wait->exception &&
                  RTEST(rb_obj_is_kind_of((VALUE)wait->exception, rb_eIOError));
    if (wait->state != HD_WAIT_READY || !(ready || closed)) return false;
    wait->wake = HD_WOKEN_BY_EXCEPTION;
    wait->exception = (hd_word)exception;
    return true;
}

/* Tells an exception that was put off, perhaps long ago, from those that never were: many may be pending. */
static ID id_put_off(void)
{
    return rb_intern("heddle_put_off");
}

void hd_put_off(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    if (NIL_P(scheduler->pending)) scheduler->pending = rb_hash_new();
    /* The first one stays: a scope that fails must not take away the cancel of its owner. */
    if (!NIL_P(rb_hash_lookup(scheduler->pending, fiber))) return;
    rb_hash_aset(scheduler->pending, fiber, exception);
    if (!OBJ_FROZEN(exception)) rb_ivar_set(exception, id_put_off(), Qtrue);
}

void hd_drop_put_off(hd_scheduler *scheduler)
{
    if (scheduler->timeouts.count) hd_timeouts_end(scheduler, rb_fiber_current());
    if (NIL_P(scheduler->pending)) return;
    rb_hash_delete(scheduler->pending, rb_fiber_current());
    if (RHASH_EMPTY_P(scheduler->pending)) scheduler->pending = Qnil;
}

void hd_raise_at_home(hd_scheduler *scheduler, VALUE error)
{
    if (NIL_P(scheduler->fatal)) scheduler->fatal = error;
    scheduler->check_interrupts = true;
}

static int delete_if_same(VALUE fiber, VALUE exception, VALUE withdrawn)
{
    (void)fiber;
    return exception == withdrawn ? ST_DELETE : ST_CONTINUE;
}

void hd_withdraw(hd_scheduler *scheduler, VALUE exception)
{
    if (NIL_P(scheduler->pending)) return;
    if (OBJ_FROZEN(exception) || !NIL_P(rb_attr_get(exception, id_put_off())))
        rb_hash_foreach(scheduler->pending, delete_if_same, exception);
}

void hd_take_over(hd_scheduler *scheduler, hd_wait *wait)
{
    hd_word displaced;
    if (hd_wait_take_over(wait, &displaced) && displaced) hd_put_off(scheduler, (VALUE)wait->root, (VALUE)displaced);
}

void hd_interrupt_fiber(hd_scheduler *scheduler, VALUE fiber, VALUE exception)
{
    hd_wait *wait = hd_wait_of_chain(scheduler, fiber);
    hd_struck struck = {fiber, wait ? hd_wait_fiber(wait) : fiber};
    if (wait && hd_interrupt_mask(scheduler, struck, exception) != HD_MASK_NEVER &&
        (hd_wake_wait(wait, HD_WOKEN_BY_EXCEPTION, exception) || change_wake(wait, exception)))
        return;
    if (RTEST(rb_fiber_alive_p(fiber))) hd_put_off(scheduler, fiber, exception);
}
