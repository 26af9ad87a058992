/* The simulation of backend_sim.h. */
#include "backend_sim.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

enum { FDS = 8192, CAPACITY = 4096, START_NS = 1000000 };

typedef struct sim_file {
    int references; /* descriptors and requests */
    int bytes;      /* to read */
    unsigned char first; /* of these, which count up */
    bool regular, hung_up;
    struct sim_file *peer; /* NULL when it is gone */
} sim_file_t;

/* A poll request in the kernel. */
typedef struct {
    uint64_t token;
    sim_file_t *file; /* NULL: a number that was not open */
    int64_t due_ns;   /* when its completion is posted; HD_NO_DEADLINE while it is not ready */
    short events;
    bool removed;
    size_t size;   /* it is a read, or a send */
    char *sends;   /* what is sent, or NULL */
} request;

typedef struct {
    uint64_t token;
    short revents;
    char *buffer; /* what a read has read, or NULL */
    int size;
    bool sent; /* it is of a send, which has sent this number of bytes */
} completion;

typedef struct {
    int64_t when_ns;
    void (*run)(void *argument);
    void *argument;
} action;

/* A growing array of anything. */
#define ARRAY(type)                                                                                                \
    struct {                                                                                                       \
        type *items;                                                                                               \
        int count, capacity;                                                                                       \
    }

#define APPEND(array, ...)                                                                                         \
    do {                                                                                                           \
        if ((array).count == (array).capacity) {                                                                   \
            (array).capacity = (array).capacity ? (array).capacity * 2 : 16;                                       \
            (array).items = realloc((array).items, (size_t)(array).capacity * sizeof(*(array).items));             \
            HD_ASSERT((array).items);                                                                              \
        }                                                                                                          \
        (array).items[(array).count++] = (__VA_ARGS__);                                                            \
    } while (0)

#define REMOVE_AT(array, index) ((array).items[index] = (array).items[--(array).count])

/* The backend's own memory: who waits under which token. */
struct hd_backend {
    int buffers; /* that are not given back */
    ARRAY(hd_interest *) slots; /* index = low half of the token - 1 */
    ARRAY(uint32_t) generations;
    bool woken, polling;
};

static struct {
    uint64_t random;
    int64_t now_ns;
    sim_faults faults;
    sim_file_t *fds[FDS];
    int fds_open;
    ARRAY(request) requests;
    ARRAY(completion) completions;
    ARRAY(action) actions;
} world;

static uint64_t draw(uint64_t limit)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return limit ? world.random % limit : 0;
}

static bool happens(unsigned percent)
{
    return percent && draw(100) < percent;
}

/* -- files --------------------------------------------------------------------------------------------------- */

static void drop(sim_file_t *file)
{
    if (!file || --file->references > 0) return;
    if (file->peer) {
        file->peer->hung_up = true;
        file->peer->peer = NULL;
    }
    free(file);
}

static sim_file_t *file_of(int fd)
{
    return fd >= 0 && fd < FDS ? world.fds[fd] : NULL;
}

static int new_fd(sim_file_t *file)
{
    int fd = 0;
    while (world.fds[fd]) HD_ASSERT(++fd < FDS);
    world.fds[fd] = file;
    world.fds_open++;
    file->references++;
    return fd;
}

static sim_file_t *new_file(void)
{
    sim_file_t *file = calloc(1, sizeof(*file));
    HD_ASSERT(file);
    return file;
}

int sim_pair(int fds[2])
{
    sim_file_t *a = new_file(), *b = new_file();
    a->peer = b;
    b->peer = a;
    fds[0] = new_fd(a);
    fds[1] = new_fd(b);
    return 0;
}

int sim_file(void)
{
    sim_file_t *file = new_file();
    file->regular = true;
    return new_fd(file);
}

int sim_dup(int fd)
{
    HD_ASSERT(file_of(fd));
    return new_fd(file_of(fd));
}

void sim_close(int fd)
{
    HD_ASSERT(file_of(fd));
    sim_file_t *file = world.fds[fd];
    world.fds[fd] = NULL;
    world.fds_open--;
    drop(file);
}

void sim_write(int fd, int bytes)
{
    HD_ASSERT(file_of(fd));
    if (file_of(fd)->peer) file_of(fd)->peer->bytes += bytes;
}

static int take(sim_file_t *file, char *bytes, int most)
{
    int size = file->bytes < most ? file->bytes : most;
    if (!size) return file->hung_up ? 0 : -1;
    for (int i = 0; bytes && i < size; i++) bytes[i] = (char)(file->first + i);
    file->first += (unsigned char)size;
    file->bytes -= size;
    return size;
}

int sim_take(int fd, char *bytes, int most)
{
    HD_ASSERT(file_of(fd));
    return take(file_of(fd), bytes, most);
}

int sim_read(int fd)
{
    return sim_take(fd, NULL, INT_MAX);
}

static short ready(const sim_file_t *file)
{
    if (!file) return POLLNVAL;
    if (file->regular) return POLLIN | POLLOUT;
    short events = 0;
    if (file->bytes > 0 || file->hung_up) events |= POLLIN;
    if (file->hung_up) events |= POLLHUP | POLLOUT;
    if (file->peer && file->peer->bytes < CAPACITY) events |= POLLOUT;
    return events;
}

short sim_ready(int fd)
{
    return ready(file_of(fd));
}

int sim_descriptors(void)
{
    return world.fds_open;
}

/* -- time ---------------------------------------------------------------------------------------------------- */

int64_t sim_now(void)
{
    return world.now_ns;
}

void sim_at(int64_t when_ns, void (*run)(void *argument), void *argument)
{
    APPEND(world.actions, (action){when_ns, run, argument});
}

int sim_pending(void)
{
    return world.actions.count;
}

static int next_action(void)
{
    int next = -1;
    for (int i = 0; i < world.actions.count; i++)
        if (next < 0 || world.actions.items[i].when_ns < world.actions.items[next].when_ns) next = i;
    return next;
}

static void go_to(int64_t when_ns)
{
    for (int next; (next = next_action()) >= 0 && world.actions.items[next].when_ns <= when_ns;) {
        action action = world.actions.items[next];
        REMOVE_AT(world.actions, next);
        if (action.when_ns > world.now_ns) world.now_ns = action.when_ns;
        action.run(action.argument);
    }
    if (when_ns > world.now_ns) world.now_ns = when_ns;
}

void sim_advance(int64_t ns)
{
    go_to(world.now_ns + ns);
}

void sim_start(uint64_t seed, sim_faults faults)
{
    HD_ASSERT(world.fds_open == 0);
    world.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    if (!world.random) world.random = 1;
    world.now_ns = START_NS;
    world.faults = faults;
    hd_clock_replace(sim_now);
}

void sim_stop(void)
{
    HD_ASSERT(world.fds_open == 0);
    HD_ASSERT(world.requests.count == 0);
    free(world.requests.items);
    free(world.completions.items);
    free(world.actions.items);
    world.requests.items = NULL;
    world.completions.items = NULL;
    world.actions.items = NULL;
    world.requests.count = world.requests.capacity = world.completions.count = world.completions.capacity = 0;
    world.actions.count = world.actions.capacity = 0;
    hd_clock_replace(NULL);
}

/* -- the kernel's side of requests --------------------------------------------------------------------------- */

static void post(uint64_t token, short revents)
{
    completion done = {.token = token, .revents = revents};
    APPEND(world.completions, done);
    if (happens(world.faults.duplicate_percent)) APPEND(world.completions, done);
}

/* Bytes that are there are read now. A read that finds nothing, or no buffer, reports readiness only. */
static void post_read(const request *request)
{
    completion done = {.token = request->token, .revents = POLLIN};
    if (!happens(world.faults.no_buffer_percent)) {
        done.buffer = malloc(request->size);
        HD_ASSERT(done.buffer);
        done.size = take(request->file, done.buffer, (int)request->size);
    }
    if (done.size < 0) {
        free(done.buffer);
        done.buffer = NULL;
    }
    APPEND(world.completions, done);
}

/* Sends what there is room for, or a part of it. The bytes go on where those before have ended. */
static void post_send(request *request)
{
    completion done = {.token = request->token, .revents = POLLOUT, .sent = true, .size = -EPIPE};
    sim_file_t *peer = request->file->peer;
    if (peer) {
        int most = CAPACITY - peer->bytes;
        done.size = (int)request->size < most ? (int)request->size : most;
        if (happens(world.faults.no_buffer_percent)) done.size = 1 + (int)draw((uint64_t)done.size);
        for (int i = 0; i < done.size; i++)
            HD_ASSERT((unsigned char)request->sends[i] == (unsigned char)(peer->first + peer->bytes + i));
        peer->bytes += done.size;
    }
    free(request->sends);
    request->sends = NULL;
    APPEND(world.completions, done);
}

static void post_move(request *request)
{
    if (request->sends)
        post_send(request);
    else
        post_read(request);
}

/* Posts what is due; the rest gets the time at which it will be. */
static void look_at_requests(void)
{
    const sim_faults *faults = &world.faults;
    for (int i = world.requests.count - 1; i >= 0; i--) {
        request *request = &world.requests.items[i];
        short asked = request->events | POLLERR | POLLHUP | POLLNVAL, revents = ready(request->file) & asked;
        if (request->removed) {
            HD_ASSERT(!request->size);
            if (happens(50)) post(request->token, revents | POLLIN); /* it was on its way already */
        } else {
            if (!revents && !request->sends && happens(faults->phantom_percent)) revents = request->events;
            if (!revents) {
                request->due_ns = HD_NO_DEADLINE;
                continue;
            }
            if (request->due_ns == HD_NO_DEADLINE)
                request->due_ns = world.now_ns + (int64_t)draw((uint64_t)faults->delay_ns_max);
            if (request->due_ns > world.now_ns) continue;
            if (happens(faults->extra_bits_percent)) revents |= POLLIN | POLLOUT | POLLPRI;
            if (request->size)
                post_move(request);
            else
                post(request->token, revents);
        }
        sim_file_t *file = request->file;
        REMOVE_AT(world.requests, i);
        drop(file);
    }
}

static int64_t next_event(void)
{
    int64_t next_ns = HD_NO_DEADLINE;
    for (int i = 0; i < world.requests.count; i++)
        if (world.requests.items[i].due_ns < next_ns) next_ns = world.requests.items[i].due_ns;
    int next = next_action();
    if (next >= 0 && world.actions.items[next].when_ns < next_ns) next_ns = world.actions.items[next].when_ns;
    return next_ns;
}

/* -- the seam ------------------------------------------------------------------------------------------------ */

static int sim_probe(char *reason, int reason_size)
{
    (void)reason, (void)reason_size;
    return 0;
}

static int sim_open(hd_backend **result, bool pinned)
{
    (void)pinned;
    hd_backend *backend = calloc(1, sizeof(*backend));
    if (!backend) return -ENOMEM;
    *result = backend;
    return 0;
}

static void drop_requests(bool removed_only)
{
    for (int i = world.requests.count - 1; i >= 0; i--) {
        request request = world.requests.items[i];
        if (removed_only && !request.removed) continue;
        if (!request.size && happens(50)) post(request.token, POLLIN);
        free(request.sends);
        REMOVE_AT(world.requests, i);
        drop(request.file);
    }
}

static void sim_backend_close(hd_backend *backend)
{
    drop_requests(false);
    HD_ASSERT(backend->buffers == 0);
    for (int i = 0; i < world.completions.count; i++) free(world.completions.items[i].buffer);
    world.completions.count = 0;
    free(backend->slots.items);
    free(backend->generations.items);
    free(backend);
}

static int sim_arm(hd_backend *backend, hd_interest *interest)
{
    HD_ASSERT(!backend->polling && interest->token == 0);
    sim_file_t *file = file_of(interest->fd);
    if (interest->fd < 0 || (!file && !world.faults.late_bad_fd)) return -EBADF;
    if (file && file->regular && !world.faults.files_pollable) return -EPERM;
    if (happens(world.faults.arm_error_percent)) return draw(2) ? -ENOMEM : -EAGAIN;
    int index = 0;
    while (index < backend->slots.count && backend->slots.items[index]) index++;
    if (index == backend->slots.count) {
        APPEND(backend->slots, NULL);
        APPEND(backend->generations, 0);
    }
    backend->slots.items[index] = interest;
    interest->token = (uint64_t)++backend->generations.items[index] << 32 | (uint32_t)(index + 1);
    if (file) file->references++;
    size_t wanted = file && !file->regular && !happens(world.faults.no_buffer_percent) ? interest->size : 0;
    request asked = {.token = interest->token, .file = file, .due_ns = HD_NO_DEADLINE, .events = interest->events,
                     .size = wanted};
    if (wanted && interest->bytes_to_send) {
        asked.sends = malloc(wanted);
        HD_ASSERT(asked.sends);
        memcpy(asked.sends, interest->bytes_to_send, wanted);
    }
    APPEND(world.requests, asked);
    return 0;
}

static void deliver(hd_backend *backend, completion completion)
{
    int index = (int)(uint32_t)completion.token - 1;
    hd_interest *interest = backend->slots.items[index];
    if (!interest || interest->token != completion.token) { /* disarmed, or delivered before */
        HD_ASSERT(!completion.buffer && !completion.sent);
        return;
    }
    backend->slots.items[index] = NULL;
    backend->buffers += completion.buffer != NULL;
    if (completion.buffer || completion.sent)
        hd_interest_deliver_bytes(interest, completion.buffer, completion.size);
    else
        hd_interest_deliver(interest, completion.revents);
}

/* The answer to a read or a send that nobody waits for any more: what it has moved, or may still have moved. */
static void drop_move(hd_backend *backend, uint64_t token)
{
    for (int i = world.requests.count - 1; i >= 0; i--) {
        request request = world.requests.items[i];
        if (request.token != token) continue;
        if (ready(request.file) & request.events && happens(50)) post_move(&request);
        free(request.sends);
        REMOVE_AT(world.requests, i);
        drop(request.file);
    }
    for (int i = 0; i < world.completions.count; i++) {
        completion completion = world.completions.items[i];
        if (completion.token != token || !(completion.buffer || completion.sent)) continue;
        REMOVE_AT(world.completions, i);
        deliver(backend, completion);
        return;
    }
}

static bool moves(uint64_t token)
{
    for (int i = 0; i < world.requests.count; i++)
        if (world.requests.items[i].token == token) return world.requests.items[i].size > 0;
    for (int i = 0; i < world.completions.count; i++)
        if (world.completions.items[i].token == token)
            return world.completions.items[i].buffer || world.completions.items[i].sent;
    return false;
}

static void sim_disarm(hd_backend *backend, hd_interest *interest)
{
    int index = (int)(uint32_t)interest->token - 1;
    HD_ASSERT(!backend->polling && backend->slots.items[index] == interest);
    if (moves(interest->token)) drop_move(backend, interest->token);
    backend->slots.items[index] = NULL;
    for (int i = 0; i < world.requests.count; i++)
        if (world.requests.items[i].token == interest->token) world.requests.items[i].removed = true;
}

static void sim_release_bytes(hd_backend *backend, const char *bytes)
{
    backend->buffers--;
    free((char *)bytes);
}

static bool sim_can_send(hd_backend *backend, size_t size)
{
    (void)backend;
    return size <= CAPACITY && !happens(world.faults.no_buffer_percent);
}

/* Requests go to the simulated kernel at once. */
static bool sim_gathers(hd_backend *backend)
{
    (void)backend;
    return false;
}

static bool sim_has_news(hd_backend *backend)
{
    (void)backend;
    return world.completions.count > 0;
}

/* (Its requests are with the file from the beginning, not with the number.) */
static void sim_withdraw(hd_backend *backend, hd_interest *interest, bool polls)
{
    (void)interest;
    HD_ASSERT(polls == backend->polling);
}

static void sim_release_files(hd_backend *backend)
{
    HD_ASSERT(!backend->polling);
    drop_requests(true);
}

static void sim_poll_nogvl(hd_backend *backend, int64_t timeout_ns, bool watches)
{
    (void)watches;
    int64_t until_ns = hd_clock_deadline(world.now_ns, timeout_ns);
    HD_ASSERT(timeout_ns >= 0 && !backend->polling);
    backend->polling = true;
    look_at_requests();
    bool spurious = happens(world.faults.spurious_percent);
    while (timeout_ns > 0 && !world.completions.count && !backend->woken && world.now_ns < until_ns) {
        int64_t next_ns = next_event();
        if (next_ns > until_ns) next_ns = until_ns;
        if (spurious) {
            go_to(next_ns == HD_NO_DEADLINE ? world.now_ns
                                            : world.now_ns + (int64_t)draw((uint64_t)(next_ns - world.now_ns)));
            break;
        }
        if (next_ns == HD_NO_DEADLINE) hd_check_failed("a poll for ever that nothing will end", __FILE__, __LINE__);
        if (next_ns == until_ns) next_ns += (int64_t)draw((uint64_t)world.faults.overshoot_ns_max);
        go_to(next_ns);
        look_at_requests();
    }
    backend->woken = false;
    backend->polling = false;
}

static void sim_reap(hd_backend *backend)
{
    while (world.completions.count > 0) {
        int at = world.faults.shuffle ? (int)draw((uint64_t)world.completions.count) : 0;
        completion completion = world.completions.items[at];
        world.completions.count--;
        for (int i = at; i < world.completions.count; i++) world.completions.items[i] = world.completions.items[i + 1];
        deliver(backend, completion);
    }
}

static void sim_wake(hd_backend *backend)
{
    backend->woken = true;
}

static bool sim_rest(hd_backend *backend)
{
    sim_release_files(backend);
    look_at_requests();
    sim_reap(backend);
    return world.requests.count == 0;
}

const hd_backend_ops hd_backend_sim = {
    .name = "sim",
    .probe = sim_probe,
    .open = sim_open,
    .close = sim_backend_close,
    .arm = sim_arm,
    .disarm = sim_disarm,
    .release_bytes = sim_release_bytes,
    .can_send = sim_can_send,
    .has_news = sim_has_news,
    .gathers = sim_gathers,
    .withdraw = sim_withdraw,
    .release_files = sim_release_files,
    .poll_nogvl = sim_poll_nogvl,
    .reap = sim_reap,
    .wake = sim_wake,
    .rest = sim_rest,
};
