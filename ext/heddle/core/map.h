/* An intrusive hash table from an opaque word (a Ruby object's address, or a descriptor) to nodes that
 * live in the caller's records. Several nodes may have one key, and stay in their order. Adding or removing a node
 * allocates nothing but, now and then, a larger or smaller bucket array. Used for fiber -> wait and descriptor ->
 * interests. */
#pragma once

#include <stdint.h>

#include "list.h"

typedef struct {
    hd_node node;
    uintptr_t key;
} hd_map_node;

typedef struct {
    hd_list *buckets;
    size_t mask; /* number of buckets - 1 */
    size_t count;
} hd_map;

/* Returns 0 or -ENOMEM. */
int hd_map_init(hd_map *map);
void hd_map_free(hd_map *map);

/* Forgets every node without touching it: their memory may be gone (after a fork). */
void hd_map_forget(hd_map *map);

void hd_map_add(hd_map *map, hd_map_node *node, uintptr_t key);
void hd_map_remove(hd_map *map, hd_map_node *node);

/* The first node with this key, or NULL. */
hd_map_node *hd_map_find(const hd_map *map, uintptr_t key);

/* The next node with the same key, or NULL. */
hd_map_node *hd_map_find_next(const hd_map *map, const hd_map_node *node);

static inline bool hd_map_node_linked(const hd_map_node *node)
{
    return hd_node_linked(&node->node);
}

/* Calls visit for every node; the visitor must not add or remove nodes. */
void hd_map_each(const hd_map *map, void (*visit)(hd_map_node *node, void *argument), void *argument);
