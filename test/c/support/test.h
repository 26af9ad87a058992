/* Assertions and a main for the plain C tests of core/ and os/.
 *
 * A test program is one file with TEST functions and a main that RUNs them between test_start and test_finish.
 * It exits with 0 (passed), 1 (failed) or 77 (skipped: nothing in it could run here). A failing CHECK says where
 * and ends the program at once. Random tests draw from rnd(), which HEDDLE_SEED makes repeatable. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEST_FAILED = 1, TEST_SKIPPED = 77 };

static uint64_t test_seed, test_random_state;
static const char *test_filter, *test_name = "start";
static const char *test_context = ""; /* e.g. the backend */
static int test_ran, test_skips;

#define TEST(name) static void name(void)

__attribute__((noreturn, format(printf, 3, 4), unused)) static void test_fail(const char *file, int line,
                                                                             const char *format, ...)
{
    fprintf(stderr, "%s:%d: %s%s%s: ", file, line, test_name, *test_context ? " on " : "", test_context);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n  repeat it with HEDDLE_SEED=%" PRIu64 "\n", test_seed);
    fflush(NULL);
    _exit(TEST_FAILED);
}

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) FAIL("%s is false", #condition);                                                         \
    } while (0)

#define CHECK_EQ(expected, actual)                                                                                 \
    do {                                                                                                           \
        intmax_t check_expected = (intmax_t)(expected), check_actual = (intmax_t)(actual);                         \
        if (check_expected != check_actual)                                                                        \
            FAIL("%s is %" PRIdMAX ", expected %" PRIdMAX, #actual, check_actual, check_expected);                 \
    } while (0)

#define CHECK_AT_LEAST(minimum, actual)                                                                            \
    do {                                                                                                           \
        intmax_t check_minimum = (intmax_t)(minimum), check_actual = (intmax_t)(actual);                           \
        if (check_actual < check_minimum)                                                                          \
            FAIL("%s is %" PRIdMAX ", expected at least %" PRIdMAX, #actual, check_actual, check_minimum);         \
    } while (0)

/* The statement must run into an HD_ASSERT. */
#define CHECK_ABORTS(statement)                                                                                    \
    do {                                                                                                           \
        fflush(NULL);                                                                                              \
        pid_t check_child = fork();                                                                                \
        if (check_child == 0) {                                                                                    \
            signal(SIGABRT, SIG_DFL);                                                                              \
            if (!freopen("/dev/null", "w", stderr)) _exit(2);                                                      \
            statement;                                                                                             \
            _exit(0);                                                                                              \
        }                                                                                                          \
        int check_status = 0;                                                                                      \
        waitpid(check_child, &check_status, 0);                                                                    \
        if (!WIFSIGNALED(check_status) || WTERMSIG(check_status) != SIGABRT)                                       \
            FAIL("%s did not abort (status %#x)", #statement, (unsigned)check_status);                             \
    } while (0)

/* A test, or a backend in it, that cannot run here. */
#define SKIP(...)                                                                                                  \
    do {                                                                                                           \
        printf("skip: %s: ", test_name);                                                                           \
        printf(__VA_ARGS__);                                                                                       \
        printf("\n");                                                                                              \
        test_skips++;                                                                                              \
        return;                                                                                                    \
    } while (0)

/* splitmix64 */
__attribute__((unused)) static uint64_t rnd64(void)
{
    uint64_t value = test_random_state += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

/* 0 <= result < limit */
__attribute__((unused)) static uint64_t rnd(uint64_t limit)
{
    return rnd64() % limit;
}

__attribute__((unused)) static bool chance(unsigned percent)
{
    return rnd(100) < percent;
}

static void test_start(int argc, char **argv)
{
    const char *seed = getenv("HEDDLE_SEED");
    test_seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 65537 + (uint64_t)getpid();
    test_filter = argc > 1 ? argv[1] : NULL;
    printf("seed %" PRIu64 "\n", test_seed);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGPIPE, SIG_IGN);
}

/* Every test draws its own sequence, so leaving one out does not change the others. */
static void test_run(const char *name, void (*run)(void))
{
    if (test_filter && !strstr(name, test_filter)) return;
    test_name = name;
    test_random_state = test_seed;
    for (const char *c = name; *c; c++) test_random_state = test_random_state * 31 + (unsigned char)*c;
    test_ran++;
    run();
}

#define RUN(name) test_run(#name, name)

static int test_finish(void)
{
    printf("%d tests\n", test_ran);
    return test_ran > 0 && test_ran == test_skips ? TEST_SKIPPED : 0;
}
