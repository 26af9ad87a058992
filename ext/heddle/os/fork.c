/* See fork.h. */
#include "fork.h"

#include <unistd.h>

unsigned hd_fork_generation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for both lists */
static hd_fork_guard *guards;
static hd_list private_fds = {{&private_fds.head, &private_fds.head}};

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (hd_fork_guard *guard = guards; guard; guard = guard->next) pthread_mutex_lock(&guard->lock);
}

static void after_fork(void)
{
    for (hd_fork_guard *guard = guards; guard; guard = guard->next) pthread_mutex_unlock(&guard->lock);
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    hd_fork_generation++;
    for (hd_node *node; (node = hd_list_first(&private_fds));) {
        hd_private_fd *fd = HD_CONTAINER_OF(node, hd_private_fd, node);
        hd_node_remove(node);
        close(fd->number);
        fd->number = -1;
    }
    for (hd_fork_guard *guard = guards; guard; guard = guard->next)
        if (guard->reset) guard->reset();
    after_fork();
}

__attribute__((constructor)) static void listen_for_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void hd_fork_register(hd_fork_guard *guard)
{
    pthread_mutex_lock(&lock);
    guard->next = guards;
    guards = guard;
    pthread_mutex_unlock(&lock);
}

void hd_private_fd_own(hd_private_fd *fd, int number)
{
    pthread_mutex_lock(&lock);
    fd->number = number;
    hd_list_push_back(&private_fds, &fd->node);
    pthread_mutex_unlock(&lock);
}

void hd_private_fd_close(hd_private_fd *fd)
{
    pthread_mutex_lock(&lock);
    bool open = hd_node_linked(&fd->node);
    if (open) {
        hd_node_remove(&fd->node);
        close(fd->number); /* no fork comes in between: its child would have a descriptor that it does not know */
    }
    pthread_mutex_unlock(&lock);
}
