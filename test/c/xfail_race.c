/* Proof that the thread sanitizer watches: two threads settle waits of one reactor, and no lock is held.
 * Runs under: thread. Caught by: data race */
#include <pthread.h>

#include "core/wait.h"
#include <stdlib.h>

static hd_reactor reactor;
static hd_wait waits[2];

static void *settle(void *wait)
{
    hd_wait_settle(wait, HD_WOKEN_BY_UNBLOCK);
    return NULL;
}

int main(void)
{
    hd_map ios;
    hd_map_init(&ios);
    hd_reactor_init(&reactor, &ios, 0);
    for (int i = 0; i < 2; i++)
        hd_wait_begin(&waits[i], &reactor, HD_WAIT_FOR_BLOCK, (hd_word)i, HD_NO_DEADLINE);
    pthread_t thread;
    if (pthread_create(&thread, NULL, settle, &waits[0])) return 0;
    settle(&waits[1]);
    pthread_join(thread, NULL);
    return 0;
}
