/*
 * A load for the rows "tail": requests that begin when their time has come, whether or not the earlier ones have been
 * answered (an open loop). The times are random, with a mean of RATE a second. A connection has one request at a time.
 * A request whose connection is busy waits, and its time counts from when it should have begun: otherwise a server that
 * stops for a while would be asked less, and seem quick (coordinated omission).
 *
 * With RATE 0 each connection sends its next request when it has its answer: this finds what the server can bear.
 *
 * usage: open_loop PORT CONNECTIONS RATE SECONDS ANSWER_BYTES REQUEST
 * Requests of the first quarter of the time do not count. Prints one line of JSON: answers a second, requests without
 * an answer, and microseconds: p50, p99, p999, max.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 256, BUFFER = 1 << 16, SPIN_NS = 50 * 1000 };
#define SECOND 1000000000LL
#define DRAIN (5 * SECOND)

/* A connection. Its requests that have not been answered are due[first] to due[count - 1]. */
struct connection {
    int fd;
    size_t got;
    int64_t *due;
    size_t first, count, capacity;
};

static const char *request;
static size_t request_size, answer_size;
static int64_t counts_from;
static double *times;
static size_t answers, times_capacity;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_MONOTONIC, &ts)) fail("clock_gettime");
    return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* A time between two requests, of an exponential distribution. Each run has the same times. */
static double random_gap(void)
{
    static uint64_t state = 88172645463325252ULL;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return -log(((double)(state >> 11) + 1) / 9007199254740993.0);
}

static void *larger(void *memory, size_t *capacity, size_t size)
{
    *capacity = *capacity ? *capacity * 2 : 64;
    memory = realloc(memory, *capacity * size);
    if (!memory) fail("realloc");
    return memory;
}

static void note(int64_t due, int64_t now)
{
    if (due < counts_from) return;
    if (answers == times_capacity) times = larger(times, &times_capacity, sizeof(*times));
    times[answers++] = (double)(now - due) / 1000;
}

/* Requests are small and there is one at a time, so a write is never short. */
static void send_request(struct connection *one)
{
    if (write(one->fd, request, request_size) != (ssize_t)request_size) fail("write");
}

static void begin(struct connection *one, int64_t due)
{
    if (one->first == one->count) one->first = one->count = 0;
    if (one->count == one->capacity) one->due = larger(one->due, &one->capacity, sizeof(*one->due));
    one->due[one->count++] = due;
    if (one->count - one->first == 1) send_request(one);
}

/* Reads what there is, and returns whether an answer is complete. */
static int read_answer(struct connection *one, int64_t now)
{
    static char buffer[BUFFER];
    ssize_t got = read(one->fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) fail("read");
    one->got += (size_t)got;
    if (one->got < answer_size) return 0;
    if (one->got > answer_size) {
        fprintf(stderr, "the answer is too long\n");
        exit(1);
    }
    one->got = 0;
    note(one->due[one->first++], now);
    if (one->first < one->count) send_request(one);
    return 1;
}

static void connect_to(struct connection *one, int port, int epoll)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int yes = 1;
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one->fd < 0 || connect(one->fd, (struct sockaddr *)&address, sizeof(address))) fail("connect");
    if (setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes))) fail("setsockopt");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, one->fd, &event)) fail("epoll_ctl");
}

static int wait_for_answers(int epoll, struct epoll_event *events, int64_t next)
{
    int64_t left = next - now_ns();
    struct timespec timeout = {0, 0};
    if (left > SPIN_NS) timeout = (struct timespec){(left - SPIN_NS) / SECOND, (left - SPIN_NS) % SECOND};
    int ready = epoll_pwait2(epoll, events, BATCH, &timeout, NULL);
    if (ready < 0 && errno != EINTR) fail("epoll_pwait2");
    return ready < 0 ? 0 : ready;
}

static int compare(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

static double quantile(double share)
{
    return answers ? times[(size_t)((double)(answers - 1) * share)] : 0;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: %s PORT CONNECTIONS RATE SECONDS ANSWER_BYTES REQUEST\n", argv[0]);
        return 2;
    }
    size_t number = (size_t)atol(argv[2]), turn = 0, in_time = 0;
    double rate = atof(argv[3]), seconds = atof(argv[4]);
    answer_size = (size_t)atol(argv[5]);
    request = argv[6];
    request_size = strlen(request);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    struct connection *all = calloc(number, sizeof(*all));
    struct epoll_event events[BATCH];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!all || epoll < 0) fail("epoll_create1");
    for (size_t i = 0; i < number; i++) connect_to(&all[i], atoi(argv[1]), epoll);

    int64_t started = now_ns(), ends = started + (int64_t)(seconds * (double)SECOND), next = rate > 0 ? started : ends;
    size_t open = 0;
    counts_from = started + (ends - started) / 4;
    for (size_t i = 0; rate <= 0 && i < number; i++, open++) begin(&all[i], started);
    for (;;) {
        int64_t now = now_ns();
        for (; rate > 0 && next <= now && next < ends; open++, turn++) {
            begin(&all[turn % number], next);
            next += (int64_t)(random_gap() * (double)SECOND / rate);
        }
        if (now >= ends && (open == 0 || now >= ends + DRAIN)) break;
        int ready = wait_for_answers(epoll, events, now < ends ? (next < ends ? next : ends) : ends + DRAIN);
        now = now_ns();
        for (int i = 0; i < ready; i++) {
            struct connection *one = events[i].data.ptr;
            if (!read_answer(one, now)) continue;
            open--;
            if (now < ends && now >= counts_from) in_time++;
            if (rate <= 0 && now < ends) {
                begin(one, now);
                open++;
            }
        }
    }
    int64_t now = now_ns();
    for (size_t i = 0; i < number; i++)
        for (size_t j = all[i].first; j < all[i].count; j++) note(all[i].due[j], now);
    qsort(times, answers, sizeof(*times), compare);
    printf("{\"rate\":%.1f,\"lost\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}\n",
           (double)in_time / ((double)(ends - counts_from) / SECOND), open, quantile(0.5), quantile(0.99),
           quantile(0.999), quantile(1));
    return 0;
}
