/* See inherited.h. */
#include "inherited.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static hd_list all;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Nothing but close(2): whatever else is done to these objects is done to the parent's. */
static void after_fork_in_child(void)
{
    hd_node *node;
    while ((node = hd_list_first(&all))) {
        hd_inherited *inherited = HD_CONTAINER_OF(node, hd_inherited, node);
        hd_node_remove(node);
        for (int i = 0; i < 2; i++) {
            close(*inherited->fds[i]);
            *inherited->fds[i] = -1;
        }
    }
    pthread_mutex_init(&lock, NULL);
}

static void prepare(void)
{
    hd_list_init(&all);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void hd_inherited_add(hd_inherited *inherited, int *one, int *other)
{
    pthread_once(&prepared, prepare);
    inherited->fds[0] = one;
    inherited->fds[1] = other;
    pthread_mutex_lock(&lock);
    hd_list_push_back(&all, &inherited->node);
    pthread_mutex_unlock(&lock);
}

void hd_inherited_remove(hd_inherited *inherited)
{
    pthread_mutex_lock(&lock);
    if (hd_node_linked(&inherited->node)) hd_node_remove(&inherited->node);
    pthread_mutex_unlock(&lock);
}
