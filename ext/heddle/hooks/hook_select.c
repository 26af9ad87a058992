/* The hook io_select: one fiber waits for many descriptors, without a thread. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/resource.h>

#include "fibers/park.h"
#include "fibers/turn.h"
#include "io/shared_io.h"
#include "ruby/deadline.h"
#include "ruby/init.h"

typedef struct {
    VALUE arrays[3]; /* as given: read, write, error; or nil */
    struct select_entry {
        VALUE object, io;
        int set;
    } *entries;
    hd_interest *interests;
    struct pollfd *polls;
    size_t count;
} select_call;

static const short EVENTS[] = {POLLIN, POLLOUT, POLLPRI};

static VALUE array_at(int argc, VALUE *argv, int index)
{
    if (index >= argc || NIL_P(argv[index])) return Qnil;
    Check_Type(argv[index], T_ARRAY);
    return argv[index];
}

/* Does the IO hold bytes that were read already? Then it is readable, whatever the kernel reports. */
static bool read_pending(VALUE io)
{
    rb_io_t *pointer;
    GetOpenFile(io, pointer);
    return rb_io_read_pending(pointer);
}

static void add_entry(select_call *selection, int set, VALUE object)
{
    VALUE io = rb_io_get_io(object);
    if (set == 1) io = rb_io_get_write_io(io);
    selection->entries[selection->count] = (struct select_entry){.object = object, .io = io, .set = set};
    selection->interests[selection->count] =
        (hd_interest){.fd = rb_io_descriptor(io), .events = EVENTS[set], .io = (hd_word)io, .selects = true};
    selection->polls[selection->count] = (struct pollfd){.events = EVENTS[set]};
    selection->count++;
}

/* Returns the number of entries in the sets. */
static size_t count_all(select_call *selection, int argc, VALUE *argv)
{
    size_t total = 0;
    for (int set = 0; set < 3; set++) {
        selection->arrays[set] = array_at(argc, argv, set);
        if (!NIL_P(selection->arrays[set])) total += RARRAY_LEN(selection->arrays[set]);
    }
    return total;
}

static size_t size_for(size_t total)
{
    return (total + 1) * (sizeof(struct select_entry) + sizeof(hd_interest) + sizeof(struct pollfd));
}

static void collect(select_call *selection, size_t total, char *bytes)
{
    selection->entries = (void *)bytes;
    selection->interests = (void *)(bytes + (total + 1) * sizeof(struct select_entry));
    selection->polls = (void *)(bytes + (total + 1) * (sizeof(struct select_entry) + sizeof(hd_interest)));
    for (int set = 0; set < 3; set++) {
        VALUE array = selection->arrays[set];
        if (NIL_P(array)) continue;
        /* to_io may run Ruby code that changes the array: never read past the number that was counted. */
        for (long i = 0; i < RARRAY_LEN(array) && selection->count < total; i++)
            add_entry(selection, set, RARRAY_AREF(array, i));
    }
}

static VALUE ready_arrays(select_call *selection)
{
    VALUE result = rb_ary_new_from_args(3, rb_ary_new(), rb_ary_new(), rb_ary_new());
    bool any = false;
    for (size_t i = 0; i < selection->count; i++) {
        if (!selection->interests[i].revents) continue;
        rb_ary_push(RARRAY_AREF(result, selection->entries[i].set), selection->entries[i].object);
        any = true;
    }
    return any ? result : Qnil;
}

/* Returns how many entries one poll may have. The kernel refuses more than the process may have descriptors (EINVAL),
 * but the same IO may be in the sets many times. */
static size_t poll_max(size_t count)
{
    struct rlimit limit;
    bool fewer = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0 && limit.rlim_cur < count;
    return fewer ? (size_t)limit.rlim_cur : count;
}

/* Polls all entries without waiting. Returns the number of ready ones, or -errno. */
static int poll_all(const select_call *selection)
{
    size_t most = selection->count;
    int ready = 0;
    for (size_t done = 0; done < selection->count;) {
        size_t left = selection->count - done, size = left < most ? left : most;
        int found = poll(selection->polls + done, size, 0);
        if (found >= 0) {
            ready += found;
            done += size;
        }
        else if (errno == EINVAL && poll_max(most) < most) most = poll_max(most);
        else if (errno != EINTR) return -errno;
    }
    return ready;
}

/* Returns the IOs that are ready now, without waiting. Raises if one is closed. Others may have run since the last
 * look, and have closed or reopened an IO: the number of its descriptor may be another file's by now. */
static VALUE look(select_call *selection)
{
    bool buffered = false;
    for (size_t i = 0; i < selection->count; i++) {
        selection->polls[i].fd = selection->interests[i].fd = rb_io_descriptor(selection->entries[i].io);
        bool pending = selection->entries[i].set == 0 && read_pending(selection->entries[i].io);
        selection->interests[i].revents = pending ? POLLIN : 0;
        buffered |= pending;
    }
    int ready = poll_all(selection);
    if (ready < 0) rb_syserr_fail(-ready, "heddle: poll");
    if (!ready && !buffered) return Qnil;
    for (size_t i = 0; i < selection->count; i++) {
        if (selection->polls[i].revents & POLLNVAL) rb_syserr_fail(EBADF, NULL);
        selection->interests[i].revents |= hd_interest_ready(&selection->interests[i], selection->polls[i].revents);
    }
    return ready_arrays(selection);
}

/* Looks for other readers of the IOs in the read set. When one is reported, others may run. */
static void look_for_readers(hd_scheduler *scheduler, select_call *selection)
{
    for (size_t i = 0; i < selection->count; i++) {
        const hd_interest *interest = &selection->interests[i];
        if (interest->events & POLLIN) hd_before_read(scheduler, (VALUE)interest->io, interest->fd);
    }
}

/* Waits for IO.select.
 *
 * @overload io_select(readables, writables = nil, exceptables = nil, timeout = nil)
 *   @param readables [Array<IO>, nil]
 *   @param writables [Array<IO>, nil]
 *   @param exceptables [Array<IO>, nil]
 *   @param timeout [Numeric, nil] seconds
 *   @return [Array<Array<IO>>, nil] nil when the timeout has passed */
static VALUE hook_io_select(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, 4);
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    select_call selection = {0};
    VALUE timeout = argc > 3 ? argv[3] : Qnil;
    if (HD_SELECT_TAKES_INFINITY && RB_FLOAT_TYPE_P(timeout) && RFLOAT_VALUE(timeout) == HUGE_VAL) timeout = Qnil;
    int64_t deadline_ns = hd_deadline_from(timeout);
    unsigned parks = scheduler->running.parks;
    hd_turn_spend(scheduler, Qnil, HD_TURN_ENDS);
    size_t total = count_all(&selection, argc, argv);
    /* The entries are in this object or on this stack. They hold objects, and the GC sees them in both places. */
    VALUE memory;
    collect(&selection, total, ALLOCV(memory, size_for(total)));
    if (timeout != INT2FIX(0)) look_for_readers(scheduler, &selection);
    VALUE result = look(&selection);
    /* Another fiber may take the data before this one runs: then it waits on. */
    while (NIL_P(result) && (NIL_P(timeout) || deadline_ns > hd_clock_now())) {
        hd_request request = {.kind = HD_WAIT_FOR_SELECT, .subject = Qnil, .deadline_ns = deadline_ns,
                              .interests = selection.interests, .interests_count = selection.count};
        int ready = hd_park_until_ready(scheduler, &request);
        if (ready < 0) rb_syserr_fail(-ready, "heddle: cannot select");
        if (ready > 0) result = look(&selection);
    }
    for (int set = 0; set < 3; set++) RB_GC_GUARD(selection.arrays[set]);
    ALLOCV_END(memory);
    if (NIL_P(result) && scheduler->running.parks == parks) hd_yield(scheduler); /* as io_wait does */
    return result;
}

void hd_init_hooks_select(void)
{
    rb_define_method(hd_cScheduler, "io_select", hook_io_select, -1);
}
