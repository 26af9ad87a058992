/*
 * TCP echo without Ruby, the floor for the row "echo": CONNECTIONS connections over the loopback device, client and
 * server in one thread and one epoll loop, messages of MESSAGE bytes. Every answer is compared with what was sent.
 *
 * All descriptors are non-blocking and registered once, level-triggered: each readiness costs one read and one write,
 * and one epoll_wait serves every connection that is ready.
 *
 * usage: echo_epoll ROUND_TRIPS WARM_UP_ROUND_TRIPS
 * Prints one line of JSON, as bench/child.rb does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 20, MESSAGE = 512, BATCH = 64 };

/* One end of a connection. A client counts its round trips; a server has left = -1 and echoes until end of file. */
struct end {
    int fd;
    long left;
};

static char message[MESSAGE];

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static double
seconds(clockid_t clock)
{
    struct timespec ts;
    if (clock_gettime(clock, &ts)) fail("clock_gettime");
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Messages are small and there is one in flight, so a write is never short; a short one would be a broken benchmark. */
static void
send_message(int fd, const char *bytes, size_t length)
{
    ssize_t sent = write(fd, bytes, length);
    if (sent != (ssize_t)length) fail("write");
}

static void
watch(int epoll, struct end *end)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = end };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, end->fd, &event)) fail("epoll_ctl");
}

static void
open_connections(int epoll, struct end *clients, struct end *servers)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, CONNECTIONS))
        fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &length)) fail("getsockname");

    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(clients[i].fd, (struct sockaddr *)&address, length)) fail("connect");
        servers[i].fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (servers[i].fd < 0) fail("accept");
        servers[i].left = -1;
        int one = 1;
        if (ioctl(clients[i].fd, FIONBIO, &one)) fail("ioctl");
        watch(epoll, &clients[i]);
        watch(epoll, &servers[i]);
    }
    close(listener);
}

/* One readable end; returns the number of round trips that it completed. */
static long
serve(struct end *end)
{
    char buffer[MESSAGE];
    ssize_t got = read(end->fd, buffer, sizeof(buffer));
    if (got < 0) {
        if (errno == EAGAIN) return 0;
        fail("read");
    }
    if (end->left < 0) {
        if (got > 0) send_message(end->fd, buffer, (size_t)got);
        return 0;
    }
    if (got != MESSAGE || memcmp(buffer, message, MESSAGE) != 0) fail("wrong answer");
    if (--end->left > 0) send_message(end->fd, message, MESSAGE);
    return 1;
}

static long
run(long round_trips)
{
    struct end clients[CONNECTIONS], servers[CONNECTIONS];
    struct epoll_event events[BATCH];
    long done = 0, total = round_trips / CONNECTIONS * CONNECTIONS;
    int epoll = epoll_create1(0);
    if (epoll < 0) fail("epoll_create1");

    open_connections(epoll, clients, servers);
    if (total > 0) {
        for (int i = 0; i < CONNECTIONS; i++) {
            clients[i].left = total / CONNECTIONS;
            send_message(clients[i].fd, message, MESSAGE);
        }
    }
    while (done < total) {
        int ready = epoll_wait(epoll, events, BATCH, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) done += serve(events[i].data.ptr);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        close(clients[i].fd);
        close(servers[i].fd);
    }
    close(epoll);
    return done;
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s ROUND_TRIPS WARM_UP_ROUND_TRIPS\n", argv[0]);
        return 2;
    }
    memset(message, 'm', MESSAGE);
    run(atol(argv[2]));

    long wanted = atol(argv[1]);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    long done = run(wanted);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("{\"status\":\"%s\",\"cpu\":%.9f,\"wall\":%.9f,\"operations\":%ld,\"backend\":\"epoll\","
           "\"result\":\"%ld\"}\n",
           done == wanted ? "ok" : "wrong result", cpu, wall, wanted, done);
    return 0;
}
