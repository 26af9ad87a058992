/* See thread.h. */
#include "thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static int create_thread(pthread_t *thread, int detached, size_t stack_size, void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, detached);
    pthread_attr_setstacksize(&attributes, stack_size);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

int hd_thread_start(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    return -create_thread(&thread, PTHREAD_CREATE_DETACHED, 256 * 1024, body, argument);
}

void hd_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &clock);
    pthread_condattr_destroy(&clock);
}

static void *tell_number(void *number)
{
    *(long *)number = syscall(SYS_gettid);
    return NULL;
}

bool hd_thread_can_start(void)
{
    enum { LOOKS_MAX = 10000 };
    pthread_t thread;
    long number = 0;
    if (create_thread(&thread, PTHREAD_CREATE_JOINABLE, 1024 * 1024, tell_number, &number)) return false;
    pthread_join(thread, NULL);
    /* The kernel counts the thread for a moment longer, and its place may be the last one. */
    for (int looks = 0; looks < LOOKS_MAX && syscall(SYS_tgkill, getpid(), number, 0) == 0; looks++) sched_yield();
    return true;
}
