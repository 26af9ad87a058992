/*
 * Runs a program with dear system calls, as on a machine with page-table isolation, or in a container with a long
 * seccomp filter:
 *
 * usage: dear_calls NANOSECONDS COMMAND ARGUMENTS...
 *
 * It installs seccomp filters, which allow everything after many comparisons, until getppid takes this time. Each
 * filter looks at an argument of the call, because the kernel remembers the answer of a filter that looks only at the
 * number.
 * It says on standard error if the largest number of filters is not enough.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RULES = 500, FILTERS_MAX = 60, CALLS = 200, ROUNDS = 20 };

static long
now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

/* The shortest of several times counts. */
static long
cost_of_call(void)
{
    long least = 1000000000L;
    for (int round = 0; round < ROUNDS; round++) {
        long before = now_ns();
        for (int call = 0; call < CALLS; call++) syscall(SYS_getppid);
        long cost = (now_ns() - before) / CALLS;
        if (cost < least) least = cost;
    }
    return least;
}

static int
install_filter(void)
{
    static struct sock_filter code[RULES + 2];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]));
    for (unsigned i = 1; i <= RULES; i++) /* no jump goes anywhere else */
        code[i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x5eccc000u + i, 0, 0);
    code[RULES + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { .len = RULES + 2, .filter = code };
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int
main(int argc, char **argv)
{
    long wanted = argc > 2 ? atol(argv[1]) : 0;
    if (wanted <= 0) {
        fprintf(stderr, "usage: %s NANOSECONDS COMMAND ARGUMENTS...\n", argv[0]);
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        perror("prctl");
        return 1;
    }
    int filters = 0;
    while (cost_of_call() < wanted && filters < FILTERS_MAX) {
        if (install_filter()) {
            perror("seccomp");
            return 1;
        }
        filters++;
    }
    if (cost_of_call() < wanted) fprintf(stderr, "%d filters: a system call takes %ld ns\n", filters, cost_of_call());
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
