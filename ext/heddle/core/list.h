/* An intrusive, circular, doubly linked list: insert and remove are O(1), branchless and allocate nothing.
 * A node that is in no list points to NULL, so a double link or unlink is caught. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "check.h"

typedef struct hd_node {
    struct hd_node *next, *prev;
} hd_node;

typedef struct {
    hd_node head;
} hd_list;

static inline void hd_list_init(hd_list *list)
{
    list->head.next = list->head.prev = &list->head;
}

static inline void hd_node_init(hd_node *node)
{
    node->next = node->prev = NULL;
}

static inline bool hd_node_linked(const hd_node *node)
{
    return node->next != NULL;
}

static inline bool hd_list_empty(const hd_list *list)
{
    return list->head.next == &list->head;
}

static inline void hd_node_insert(hd_node *node, hd_node *before)
{
    HD_ASSERT(node->next == NULL);
    node->next = before;
    node->prev = before->prev;
    before->prev->next = node;
    before->prev = node;
}

static inline void hd_list_push_back(hd_list *list, hd_node *node)
{
    hd_node_insert(node, &list->head);
}

static inline void hd_list_push_front(hd_list *list, hd_node *node)
{
    hd_node_insert(node, list->head.next);
}

static inline void hd_node_remove(hd_node *node)
{
    HD_ASSERT(node->next != NULL && node->prev->next == node && node->next->prev == node);
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

static inline hd_node *hd_list_first(const hd_list *list)
{
    return hd_list_empty(list) ? NULL : list->head.next;
}

/* Moves all nodes of a list to the end of another list, in their order. */
static inline void hd_list_move(hd_list *to, hd_list *from)
{
    for (hd_node *node; (node = hd_list_first(from));) {
        hd_node_remove(node);
        hd_list_push_back(to, node);
    }
}

/* The node after this one, or NULL at the end. */
static inline hd_node *hd_list_after(const hd_list *list, const hd_node *node)
{
    return node->next == &list->head ? NULL : node->next;
}
