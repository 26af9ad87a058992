/* A getaddrinfo for tests, to be preloaded. The file that FAKE_HOSTS names has a line for each answer:
 *
 *   NAME FAMILY MILLISECONDS ADDRESS       slow 4 500 127.0.0.1
 *   NAME FAMILY MILLISECONDS !ERROR        dead 6 2000 !-3
 *
 * If MILLISECONDS are negative, the answer comes once there is a file with the name of that one and ".open", or after
 * 25 seconds.
 *
 * A NAME that ends in * stands for all that begin so; FAMILY is 4 or 6. Who asks for both families waits for the
 * slower one, unless there is a line with FAMILY 0 for that, before the others: as for a name in the hosts file. Other
 * names go to the system. Each call adds a line to the file that FAKE_LOG names.
 *
 * When FAKE_REVERSE is set, the name of every IP address is "fake-name", after this number of milliseconds. */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static void note(const char *host, int family)
{
    char line[300];
    const char *path = getenv("FAKE_LOG");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    int size = snprintf(line, sizeof(line), "%s %s\n", host,
                        family == AF_INET ? "4" : family == AF_INET6 ? "6" : "any");
    if (write(fd, line, (size_t)size) != size) abort();
    close(fd);
}

static int names(const char *pattern, const char *host)
{
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '*') return strncmp(pattern, host, length - 1) == 0;
    return strcmp(pattern, host) == 0;
}

static void append(struct addrinfo **list, struct addrinfo *more)
{
    while (*list) list = &(*list)->ai_next;
    *list = more;
}

static void pass(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void pass_gate(const char *hosts)
{
    char gate[300];
    snprintf(gate, sizeof(gate), "%s.open", hosts);
    for (int i = 0; i < 2500 && access(gate, F_OK) != 0; i++) pass(10);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    resolver *system_resolver = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("FAKE_HOSTS");
    FILE *file = host && path && !(hints->ai_flags & AI_NUMERICHOST) ? fopen(path, "re") : NULL;
    if (!file) return system_resolver(host, service, hints, result);
    char pattern[100], answer[100];
    int family, known = 0, both = 0, closed = 0, error = EAI_NONAME;
    long milliseconds, longest = 0;
    struct addrinfo *list = NULL;
    while (fscanf(file, "%99s %d %ld %99s", pattern, &family, &milliseconds, answer) == 4) {
        if (!names(pattern, host)) continue;
        known = 1;
        if (both || (family == 0 && hints->ai_family != AF_UNSPEC)) continue;
        both = family == 0;
        family = family == 6 ? AF_INET6 : AF_INET;
        if (hints->ai_family != AF_UNSPEC && hints->ai_family != family) continue;
        if (milliseconds > longest) longest = milliseconds;
        if (milliseconds < 0) closed = 1;
        if (answer[0] == '!') {
            error = atoi(answer + 1);
            continue;
        }
        struct addrinfo numeric = *hints, *one = NULL;
        numeric.ai_family = both ? AF_UNSPEC : family;
        numeric.ai_flags = AI_NUMERICHOST;
        int failed = system_resolver(answer, service, &numeric, &one);
        if (failed) error = failed;
        append(&list, one);
    }
    fclose(file);
    if (!known) return system_resolver(host, service, hints, result);
    note(host, hints->ai_family);
    pass(longest);
    if (closed) pass_gate(path);
    *result = list;
    return list ? 0 : error;
}

int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service,
                socklen_t service_size, int flags)
{
    typedef int function(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int);
    function *system_function = (function *)dlsym(RTLD_NEXT, "getnameinfo");
    const char *milliseconds = getenv("FAKE_REVERSE");
    int asked = host && milliseconds && !(flags & NI_NUMERICHOST) && address->sa_family != AF_UNIX;
    int error = system_function(address, length, host, host_size, service, service_size,
                                asked ? flags | NI_NUMERICHOST : flags);
    if (!asked || error) return error;
    note(host, AF_UNSPEC);
    pass(atol(milliseconds));
    snprintf(host, host_size, "fake-name");
    return 0;
}
