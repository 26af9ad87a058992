/* See park.h. An exception, a kill or an interrupt that comes at a switch is held back until the wait record is
 * unlinked, so nothing is left behind. */
#include "park.h"

#include <errno.h>

#include "fibers/pending/pending.h"
#include "ruby/caught.h"
#include "ruby/fiber_insides.h"
#include "fiber_return.h"
#include "home_waits.h"
#include "loop.h"
#include "read_ahead.h"
#include "unblock_relay.h"
#include "watch.h"

typedef struct {
    hd_wait wait;
    hd_scheduler *scheduler;
    const hd_request *request;
    size_t armed;
    VALUE last_status; /* $?, or nil */
    hd_passed passed; /* for the switch that a signal's handler has interrupted, if this is one */
    bool again; /* it was parked for this request before */
    bool switched_away;
    bool over; /* its wait has ended: no exception came at the switch */
} park_call;

static void begin(park_call *parking)
{
    const hd_request *request = parking->request;
    hd_scheduler *scheduler = parking->scheduler;
    hd_wait *wait = &parking->wait;
    VALUE root = hd_root(scheduler);
    hd_word fiber = (hd_word)rb_fiber_current();
    /* When the scheduler ends, a cancelled fiber must not start one more fiber, which nobody would cancel. */
    if (request->switch_away && !scheduler->masks.ended)
        hd_pending_raise_overdue(scheduler);
    else if (!request->quiet)
        hd_pending_raise(scheduler, HD_MASK_ON_BLOCKING, HD_ALL_PENDING);
    if (request->kind == HD_WAIT_YIELDED) {
        hd_wait_begin_ready(wait, &scheduler->reactor, fiber, request->place);
    }
    else {
        int error = hd_wait_begin(wait, &scheduler->reactor, request->kind, fiber, request->deadline_ns);
        if (error) rb_syserr_fail(-error, "heddle: timer");
    }
    scheduler->running.parks++;
    hd_watch_note_start(scheduler);
    wait->subject = (hd_word)request->subject;
    wait->interests = request->interests;
    wait->interests_count = request->interests_count;
    wait->scheduled = scheduler->running.scheduled;
    wait->sliced = request->sliced;
    wait->task = (hd_word)scheduler->running.task;
    hd_wait_for_root(wait, (hd_word)root);
    scheduler->running.root = root; /* the root may be a fiber of the program's own */
    hd_home_wait_begins(scheduler, wait);
    parking->passed = hd_passed_to((VALUE)fiber);
    parking->last_status = scheduler->running.has_waited_for_child ? rb_last_status_get() : Qnil;
}

/* Puts the fiber's own $? back. For Ruby $? belongs to the thread, so it may show a child for which another fiber
 * has waited meanwhile. */
static void restore_last_status(VALUE last_status)
{
    if (NIL_P(last_status) || rb_last_status_get() == last_status) return;
    int status = NUM2INT(rb_funcall(last_status, rb_intern("to_i"), 0));
    rb_last_status_set(status, NUM2PIDT(rb_funcall(last_status, rb_intern("pid"), 0)));
}

/* Submits the request to the kernel and the workers. Returns 0 or -errno. */
static int ask(park_call *parking)
{
    const hd_request *request = parking->request;
    for (; parking->armed < request->interests_count; parking->armed++) {
        hd_interest *interest = &request->interests[parking->armed];
        int error = hd_interest_arm(interest, &parking->wait, interest->io, interest->fd, interest->events);
        if (error) return error;
    }
    for (size_t i = 0; i < request->jobs_count; i++) hd_job_set_wait(request->jobs[i], &parking->wait);
    if (!request->job) return 0;
    if (!parking->again) return hd_job_submit(request->job, &parking->scheduler->inbox, &parking->wait);
    hd_job_set_wait(request->job, &parking->wait);
    return 0;
}

/* May control come to this fiber when another one ends that a task had entered by transfer? It comes only to fibers
 * that this scheduler has not started: home, a fiber that home has resumed, a fiber of the program's own. */
static bool strays_may_come(const hd_scheduler *scheduler, const hd_wait *wait)
{
    return (VALUE)wait->root != scheduler->running.root && !hd_wait_void(wait) &&
           (!wait->scheduled || (VALUE)wait->root == scheduler->home.fiber);
}

/* Continues after control has come back with a value. */
static VALUE go_on(park_call *parking, VALUE value)
{
    hd_scheduler *scheduler = parking->scheduler;
    hd_scheduler_check_fork(scheduler);
    return RB_UNLIKELY(strays_may_come(scheduler, &parking->wait)) ? hd_send_back(scheduler, value) : value;
}

static VALUE until_woken(VALUE pointer)
{
    park_call *parking = (void *)pointer;
    const hd_request *request = parking->request;
    if (request->switch_away && !parking->switched_away) {
        parking->switched_away = true;
        *request->result = go_on(parking, request->switch_away(request->argument));
    }
    while (parking->wait.state != HD_WAIT_DONE && !hd_wait_void(&parking->wait))
        go_on(parking, hd_loop_turn(parking->scheduler, &parking->wait, (VALUE)hd_wait_fiber(&parking->wait)));
    parking->over = true;
    return Qnil;
}

/* Turns the loop until the wait has ended. Returns the state of rb_protect. */
static int wait_until_woken(park_call *parking)
{
    VALUE before = rb_errinfo();
    int state = 0;
    rb_protect(until_woken, (VALUE)parking, &state);
    while (RB_UNLIKELY(state) && strays_may_come(parking->scheduler, &parking->wait) &&
           hd_send_error_back(parking->scheduler, before, &state)) {
        if (!state) rb_protect(until_woken, (VALUE)parking, &state);
    }
    return state;
}

/* Takes back requests that were not answered. Another thread may close one of these IOs at any moment, also while
 * this one computes, and the peer must see this. So the kernel must let go of the file now. */
static void disarm(park_call *parking)
{
    const hd_reactor *reactor = &parking->scheduler->reactor;
    bool held = false;
    for (size_t i = 0; i < parking->armed; i++) {
        hd_interest *interest = &parking->request->interests[i];
        held |= interest->token != 0;
        hd_interest_disarm(interest);
    }
    if (RB_UNLIKELY(held) && reactor->backend && !rb_thread_alone()) reactor->ops->release_files(reactor->backend);
}

/* Passes a wake on, because Fiber#raise, a kill or an interrupt was faster. */
static void pass_on(hd_scheduler *scheduler, const hd_wait *wait)
{
    if (wait->wake == HD_WOKEN_BY_UNBLOCK) hd_relay_wake(scheduler, wait);
}

/* Takes the bytes that the kernel has read. Bytes that it has sent need no such step. */
static void take_answer(const park_call *parking)
{
    hd_interest *interest = parking->request->interests;
    if (hd_wait_void(&parking->wait)) {
        interest->answered = false; /* the child of a fork: the bytes are for its parent */
        return;
    }
    if (interest->bytes_to_send) return;
    if (interest->result > 0) memcpy(parking->request->read_memory, interest->bytes, (size_t)interest->result);
    hd_interest_release(interest);
    if (interest->result > 0 && !parking->over)
        hd_put_back(parking->scheduler, interest, parking->request->read_memory);
}

static VALUE unpark(VALUE pointer)
{
    park_call *parking = (void *)pointer;
    const hd_request *request = parking->request;
    hd_scheduler *scheduler = parking->scheduler;
    hd_wait *wait = &parking->wait;
    hd_scheduler_check_fork(scheduler);
    hd_note_running(scheduler, wait);
    hd_watch_note_start(scheduler);
    disarm(parking);
    for (size_t i = 0; i < request->jobs_count; i++) hd_job_set_wait(request->jobs[i], NULL);
    hd_home_wait_ends(scheduler, wait);
    hd_pass_again((VALUE)hd_wait_fiber(wait), parking->passed);
    hd_wait_end(wait);
    if (RB_UNLIKELY(!parking->over) && !hd_wait_void(wait)) pass_on(scheduler, wait);
    /* This may raise for want of memory, so it comes when nothing refers to this stack any longer. */
    if (request->moves_bytes && request->interests->answered) take_answer(parking);
    restore_last_status(parking->last_status);
    return Qnil;
}

/* Was an IO closed meanwhile? Then the numbers of its descriptors may soon belong to others, and the caller must
 * look again. */
static bool closed_meanwhile(const hd_request *request)
{
    bool closed = false;
    for (size_t i = 0; i < request->interests_count; i++) closed |= request->interests[i].leaving;
    return closed;
}

/* Parks once. Returns how the fiber was woken, or -errno. HD_WOKEN_BY_EXCEPTION: the pending exception was
 * withdrawn, or is held back. HD_WOKEN_NOT: an IO was closed meanwhile, too; or the wait is void after a fork. */
static int park_once(hd_scheduler *scheduler, const hd_request *request, bool again)
{
    park_call parking = {.scheduler = scheduler, .request = request, .again = again};
    begin(&parking);
    int error = ask(&parking);
    if (error) {
        parking.over = true;
        unpark((VALUE)&parking);
        return error;
    }
    int state = wait_until_woken(&parking);
    /* A signal's handler may run in unpark, and clear what is being raised: rb_ensure keeps it. */
    if (RB_UNLIKELY(state)) rb_ensure(hd_jump, (VALUE)state, unpark, (VALUE)&parking);
    unpark((VALUE)&parking);
    if (request->moves_bytes && request->interests->answered) return HD_WOKEN_BY_EVENT;
    if (RB_LIKELY(parking.wait.wake != HD_WOKEN_BY_EXCEPTION)) return (int)parking.wait.wake;
    if (request->job) hd_job_set_wait(request->job, NULL);
    /* A cancel has precedence over the error of a close. */
    VALUE exception = (VALUE)parking.wait.exception;
    bool closed = closed_meanwhile(request);
    if (exception && !closed) rb_exc_raise(exception);
    if (!hd_wait_void(&parking.wait)) hd_pending_raise(scheduler, HD_MASK_ON_BLOCKING, HD_ALL_PENDING);
    if (exception) rb_exc_raise(exception);
    return hd_wait_void(&parking.wait) || closed ? HD_WOKEN_NOT : HD_WOKEN_BY_EXCEPTION;
}

typedef struct {
    struct pollfd *polls;
    size_t count;
    int timeout_ms, found;
} poll_call;

static void *poll_without_gvl(void *pointer)
{
    poll_call *call = pointer;
    call->found = poll(call->polls, call->count, call->timeout_ms);
    if (call->found < 0) call->found = -errno;
    return NULL;
}

int hd_poll_alone(struct pollfd *polls, size_t count, int64_t deadline_ns)
{
    poll_call call = {polls, count, hd_clock_ms_until(deadline_ns), 0};
    rb_nogvl(poll_without_gvl, &call, RUBY_UBF_IO, NULL, 0);
    return call.found;
}

/* A signal's handler has forked while this fiber waited, and the fiber goes on in the child. The loop was its parent's,
 * and no other fiber runs. So it waits as Ruby does without a scheduler. A fiber that waits for another fiber or for a
 * worker looks again. Returns how it was woken, or -errno. */
static int wait_in_child(const hd_request *request)
{
    bool sleeps = request->kind == HD_WAIT_FOR_SLEEP || request->kind == HD_WAIT_FOR_PROCESS ||
                  request->kind == HD_WAIT_FOR_SELECT;
    if (!request->interests_count && !sleeps) return HD_WOKEN_NOT;
    VALUE memory;
    size_t count = request->interests_count;
    struct pollfd *polls = ALLOCV_N(struct pollfd, memory, count + 1);
    for (size_t i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = request->interests[i].fd, .events = request->interests[i].events};
    int found;
    do {
        found = hd_poll_alone(polls, count, request->deadline_ns);
    } while (found == -EINTR || (found == 0 && hd_clock_now() < request->deadline_ns));
    for (size_t i = 0; i < count; i++)
        request->interests[i].revents = hd_interest_ready(&request->interests[i], polls[i].revents);
    ALLOCV_END(memory);
    return found < 0 ? found : found ? HD_WOKEN_BY_EVENT : HD_WOKEN_BY_TIMEOUT;
}

int hd_park(hd_scheduler *scheduler, const hd_request *request)
{
    if (RB_UNLIKELY(!scheduler->reactor.backend)) return wait_in_child(request);
    int wake = park_once(scheduler, request, false);
    /* The pending exception is not raised if another fiber has left the block of its Timeout, if a signal's handler
     * has rescued it, or if its block is being ended already. The request was not fulfilled, so the fiber parks
     * again. */
    while (RB_UNLIKELY(wake == HD_WOKEN_BY_EXCEPTION)) wake = park_once(scheduler, request, true);
    return RB_UNLIKELY(wake == HD_WOKEN_NOT && !scheduler->reactor.backend) ? wait_in_child(request) : wake;
}

void hd_yield(hd_scheduler *scheduler)
{
    hd_park(scheduler, &(hd_request){.kind = HD_WAIT_YIELDED, .subject = Qnil, .place = HD_YIELDS});
}
