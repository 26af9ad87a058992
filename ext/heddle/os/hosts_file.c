/* See hosts_file.h, hosts(5) and nsswitch.conf(5). Only glibc has an nsswitch.conf: with another C library the
 * answer is always no. */
#include "hosts_file.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fork.h"

enum { LONGEST_FILE = 64 * 1024 }; /* searching a longer file takes as much time as a worker */

/* The text of a file, which is read again when the file has changed. */
typedef struct {
    const char *path;
    char *text; /* NULL: the file cannot be used */
    struct stat status;
} text_file;

static hd_fork_guard files_guard = {.lock = PTHREAD_MUTEX_INITIALIZER};
static text_file hosts = {.path = "/etc/hosts"}, name_services = {.path = "/etc/nsswitch.conf"};

static bool unchanged(const struct stat *one, const struct stat *two)
{
    return one->st_dev == two->st_dev && one->st_ino == two->st_ino && one->st_size == two->st_size &&
           one->st_mtim.tv_sec == two->st_mtim.tv_sec && one->st_mtim.tv_nsec == two->st_mtim.tv_nsec &&
           one->st_ctim.tv_sec == two->st_ctim.tv_sec && one->st_ctim.tv_nsec == two->st_ctim.tv_nsec;
}

static char *read_text(const char *path, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char *text = malloc(size + 1);
    if (text && read(fd, text, size) == (ssize_t)size) {
        text[size] = '\0';
    } else {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

static const char *text_of(text_file *file)
{
    struct stat status = {0};
    bool usable = stat(file->path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= LONGEST_FILE;
    if (usable && file->text && unchanged(&status, &file->status)) return file->text;
    free(file->text);
    file->text = usable ? read_text(file->path, (size_t)status.st_size) : NULL;
    file->status = status;
    return file->text;
}

/* -- lines of words ------------------------------------------------------------------------------------------- */

/* Returns the next word of the line, or NULL; ignores a comment. */
static const char *next_word(const char **line, size_t *length)
{
    *line += strspn(*line, " \t\r\f\v");
    const char *word = *line;
    *length = strcspn(word, " \t\r\f\v\n#");
    *line += *length;
    return *length ? word : NULL;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : NULL;
}

static bool same_word(const char *word, size_t length, const char *other)
{
    return strlen(other) == length && strncasecmp(word, other, length) == 0;
}

static bool is_address(int family, const char *word, size_t length)
{
    char copy[INET6_ADDRSTRLEN], bytes[sizeof(struct in6_addr)];
    if (length >= sizeof(copy)) return false;
    memcpy(copy, word, length);
    copy[length] = '\0';
    return inet_pton(family, copy, bytes) == 1;
}

/* Does the line name this host? An example is "127.0.0.1 localhost vm". */
static bool line_names(const char *line, const char *host, int family)
{
    size_t length;
    const char *word = next_word(&line, &length);
    if (!word || !((family != AF_INET6 && is_address(AF_INET, word, length)) ||
                   (family != AF_INET && is_address(AF_INET6, word, length))))
        return false;
    while ((word = next_word(&line, &length)))
        if (same_word(word, length, host)) return true;
    return false;
}

/* Do the files come first in this line, and is their answer final? "hosts: files dns" is such a line, "files
 * [SUCCESS=continue]" is not. */
static bool files_come_first(const char *line)
{
    size_t length;
    const char *word = next_word(&line, &length);
    if (!word || !same_word(word, length, "hosts:")) return false;
    word = next_word(&line, &length);
    if (!word || !same_word(word, length, "files")) return false;
    word = next_word(&line, &length);
    return !word || *word != '[';
}

bool hd_hosts_text_answers(const char *name_services, const char *hosts, const char *host, int family)
{
    while (name_services && !files_come_first(name_services)) name_services = next_line(name_services);
    if (!name_services) return false;
    while (hosts && !line_names(hosts, host, family)) hosts = next_line(hosts);
    return hosts;
}

/* -- who answers ---------------------------------------------------------------------------------------------- */

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool resolver_is_of_libc;

/* Finds out who answers getaddrinfo. A program may preload a getaddrinfo of its own, which may wait. dladdr takes
 * longer than a lookup, so this is done once. */
static void prepare(void)
{
    hd_fork_register(&files_guard);
    Dl_info resolver, libc;
    resolver_is_of_libc = dladdr((void *)(size_t)getaddrinfo, &resolver) &&
                          dladdr((void *)(size_t)getservbyname, &libc) && resolver.dli_fbase == libc.dli_fbase;
}

/* Does nscd run? It is asked before any file, and may wait for a name server on behalf of others. */
static bool name_service_cache_runs(void)
{
    return access("/var/run/nscd/socket", F_OK) == 0;
}

bool hd_hosts_file_answers(const char *host, int family)
{
    pthread_once(&prepared, prepare);
    if (!host || !resolver_is_of_libc || name_service_cache_runs()) return false;
    pthread_mutex_lock(&files_guard.lock);
    bool answer = hd_hosts_text_answers(text_of(&name_services), text_of(&hosts), host, family);
    pthread_mutex_unlock(&files_guard.lock);
    return answer;
}
