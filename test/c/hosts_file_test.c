/* os/hosts_file.c: which names getaddrinfo finds in the hosts file, and when it would ask elsewhere. */
#include "os/hosts_file.h"

#include <sys/socket.h>

#include "test.h"

static const char FILES_FIRST[] = "passwd: files\nhosts: files dns\n";

static const char HOSTS[] = "# localhost.invalid is in a comment\n"
                            "127.0.0.1\tlocalhost vm\r\n"
                            "  10.0.0.1   ten # commented\n"
                            "::1 six six.example\n"
                            "nonsense broken\n"
                            "127.0.0.300 broken\n"
                            "10.0.0.2\n"
                            "10.0.0.3 both\n"
                            "fe80::3 both\n"
                            "10.0.0.4 last";

static bool found(const char *host, int family)
{
    return hd_hosts_text_answers(FILES_FIRST, HOSTS, host, family);
}

TEST(names)
{
    static const char *const known[] = {"localhost", "vm", "ten", "six", "six.example", "both", "last", "LocalHost"};
    static const char *const unknown[] = {"localhost.invalid", "commented", "broken", "10.0.0.2", "local", "localhosts",
                                          "127.0.0.1", "", "six."};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) CHECK(found(known[i], AF_UNSPEC));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) CHECK(!found(unknown[i], AF_UNSPEC));
}

/* getaddrinfo asks the name server for the addresses of a family that the file does not have. */
TEST(families)
{
    CHECK(found("localhost", AF_INET));
    CHECK(!found("localhost", AF_INET6));
    CHECK(!found("six", AF_INET));
    CHECK(found("six", AF_INET6));
    CHECK(found("both", AF_INET));
    CHECK(found("both", AF_INET6));
}

static bool with(const char *name_services)
{
    return hd_hosts_text_answers(name_services, HOSTS, "localhost", AF_UNSPEC);
}

TEST(name_services)
{
    CHECK(with("hosts: files"));
    CHECK(with("  hosts:\tfiles # first\n"));
    CHECK(with("#hosts: dns\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n"));
    CHECK(!with(NULL));
    CHECK(!with(""));
    CHECK(!with("passwd: files\n"));
    CHECK(!with("#hosts: files\n"));
    CHECK(!with("hosts: dns files\n"));
    CHECK(!with("hosts: filesystem\n"));
    CHECK(!with("hosts: files [SUCCESS=continue] dns\n"));
    CHECK(!with("hosts files\n"));
    CHECK(!hd_hosts_text_answers(FILES_FIRST, NULL, "localhost", AF_UNSPEC));
    CHECK(!hd_hosts_text_answers(FILES_FIRST, "", "localhost", AF_UNSPEC));
}

/* This machine's files: twice, for they are read again only when they have changed. */
TEST(this_machine)
{
    bool first = hd_hosts_file_answers("localhost", AF_UNSPEC);
    CHECK(hd_hosts_file_answers("localhost", AF_UNSPEC) == first);
    CHECK(!hd_hosts_file_answers("no-such-host.invalid", AF_UNSPEC));
    CHECK(!hd_hosts_file_answers(NULL, AF_UNSPEC));
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(names);
    RUN(families);
    RUN(name_services);
    RUN(this_machine);
    return test_finish();
}
