/* See kept_backend.h. One lock guards the records of all threads. It is not held while a backend is closed. */
#include "kept_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "fork.h"
#include "thread.h"

typedef struct {
    hd_node node; /* in the list of the idle ones, if it has a backend */
    const hd_backend_ops *ops;
    hd_backend *backend;
    unsigned generation;
    int64_t until_ns;
} kept;

static pthread_key_t key; /* for the record of a thread */
static hd_list idle;      /* the backend that has been kept for longest comes first */
static int idle_count;
static bool watched; /* a thread watches, and closes backends that have been idle for long */

/* Forgets the records, in the child of a fork. The record of its only thread still has its backend, which take and
 * close close. */
static void forget_all(void)
{
    for (hd_node *node; (node = hd_list_first(&idle));) hd_node_remove(node);
    idle_count = 0;
    watched = false;
}

static hd_fork_guard guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .reset = forget_all};
static pthread_mutex_t *const lock = &guard.lock;

static void end_thread(void *record);

__attribute__((constructor)) static void prepare(void)
{
    hd_list_init(&idle);
    pthread_key_create(&key, end_thread);
    hd_fork_register(&guard);
}

/* Takes the backend out of a record. Called with the lock. */
static hd_backend *take_from(kept *record)
{
    hd_backend *backend = record->backend;
    record->backend = NULL;
    if (!hd_node_linked(&record->node)) return backend;
    hd_node_remove(&record->node);
    idle_count--;
    return backend;
}

static void close_kept(kept *record)
{
    pthread_mutex_lock(lock);
    hd_backend *backend = take_from(record);
    pthread_mutex_unlock(lock);
    if (backend) record->ops->close(backend);
}

static void end_thread(void *record)
{
    close_kept(record);
    free(record);
}

void hd_kept_backend_close(void)
{
    kept *own = pthread_getspecific(key);
    if (own) close_kept(own);
}

hd_backend *hd_kept_backend_take(const hd_backend_ops *ops)
{
    kept *own = pthread_getspecific(key);
    if (!own) return NULL;
    pthread_mutex_lock(lock);
    hd_backend *backend = take_from(own);
    pthread_mutex_unlock(lock);
    if (!backend || (own->ops == ops && !hd_forked_since(own->generation))) return backend;
    own->ops->close(backend);
    return NULL;
}

static void nap(int64_t duration_ns)
{
    struct timespec duration = {duration_ns / HD_NS_PER_SECOND, duration_ns % HD_NS_PER_SECOND};
    nanosleep(&duration, NULL);
}

/* The body of the thread that closes backends that have been idle for long. */
static void *watch(void *unused)
{
    pthread_mutex_lock(lock);
    for (hd_node *node; (node = hd_list_first(&idle));) {
        kept *oldest = HD_CONTAINER_OF(node, kept, node);
        int64_t left_ns = oldest->until_ns - hd_clock_now();
        const hd_backend_ops *ops = oldest->ops; /* when the lock is released, the record may go away with its thread */
        hd_backend *backend = left_ns > 0 ? NULL : take_from(oldest);
        pthread_mutex_unlock(lock);
        if (backend)
            ops->close(backend);
        else
            nap(left_ns);
        pthread_mutex_lock(lock);
    }
    watched = false;
    pthread_mutex_unlock(lock);
    return unused;
}

static kept *own_record(void)
{
    kept *own = pthread_getspecific(key);
    if (own) return own;
    own = calloc(1, sizeof(*own));
    if (own && pthread_setspecific(key, own) == 0) return own;
    free(own);
    return NULL;
}

static bool put_into(kept *own, const hd_backend_ops *ops, hd_backend *backend)
{
    pthread_mutex_lock(lock);
    bool room = idle_count < HD_KEPT_MAX, unwatched = room && !watched;
    if (room) {
        own->ops = ops;
        own->backend = backend;
        own->generation = hd_fork_generation;
        own->until_ns = hd_clock_now() + HD_KEPT_SECONDS * HD_NS_PER_SECOND;
        hd_list_push_back(&idle, &own->node);
        idle_count++;
        watched = true;
    }
    pthread_mutex_unlock(lock);
    if (!unwatched || hd_thread_start(watch, NULL) == 0) return room;
    pthread_mutex_lock(lock);
    watched = false;
    take_from(own);
    pthread_mutex_unlock(lock);
    return false;
}

void hd_kept_backend_put(const hd_backend_ops *ops, hd_backend *backend)
{
    kept *own = own_record();
    if (own) close_kept(own);
    if (!own || !ops->rest(backend) || !put_into(own, ops, backend)) ops->close(backend);
}
