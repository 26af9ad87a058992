/* See thread.h. */
#include "thread.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "core/clock.h"
#include "platform.h"

#if HD_HAS_LINUX
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

#ifdef __APPLE__ /* a condition has no clock there, but can wait for a time from now */

void hd_condition_init(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

bool hd_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns)
{
    int64_t left_ns = until_ns - hd_clock_machine();
    if (left_ns < 0) left_ns = 0;
    struct timespec left = {left_ns / HD_NS_PER_SECOND, left_ns % HD_NS_PER_SECOND};
    return pthread_cond_timedwait_relative_np(condition, lock, &left) == 0;
}

#else

void hd_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &clock);
    pthread_condattr_destroy(&clock);
}

bool hd_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns)
{
    struct timespec until = {until_ns / HD_NS_PER_SECOND, until_ns % HD_NS_PER_SECOND};
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}

#endif

#if HD_HAS_LINUX

/* Stores the number that the kernel knows the thread by. */
static void *store_number(void *number)
{
    *(long *)number = syscall(SYS_gettid);
    return NULL;
}

/* The kernel counts an ended thread for a moment longer, and its place may be the last one. */
static void await_end(long number)
{
    enum { LOOKS_MAX = 10000 };
    for (int looks = 0; looks < LOOKS_MAX && syscall(SYS_tgkill, getpid(), number, 0) == 0; looks++) sched_yield();
}

#else

static void *store_number(void *number)
{
    return number;
}

static void await_end(long number)
{
    (void)number;
}

#endif

bool hd_thread_can_start(void)
{
    pthread_t thread;
    long number = 0;
    if (create_thread(&thread, PTHREAD_CREATE_JOINABLE, 1024 * 1024, store_number, &number)) return false;
    pthread_join(thread, NULL);
    await_end(number);
    return true;
}
