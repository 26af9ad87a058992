/* The intrusive hash table of map.h. */
#include "map.h"

#include <errno.h>
#include <stdlib.h>

enum { INITIAL_BUCKETS = 8 };

static int allocate(hd_map *map, size_t buckets)
{
    hd_list *lists = malloc(buckets * sizeof(hd_list));
    if (!lists) return -ENOMEM;
    for (size_t i = 0; i < buckets; i++) hd_list_init(&lists[i]);
    map->buckets = lists;
    map->mask = buckets - 1;
    return 0;
}

int hd_map_init(hd_map *map)
{
    map->count = 0;
    return allocate(map, INITIAL_BUCKETS);
}

void hd_map_free(hd_map *map)
{
    free(map->buckets);
    map->buckets = NULL;
    map->count = map->mask = 0;
}

void hd_map_forget(hd_map *map)
{
    for (size_t i = 0; i <= map->mask; i++) hd_list_init(&map->buckets[i]);
    map->count = 0;
}

/* Finds the bucket of a key. Object addresses are multiples of 8 (mostly of 40), so a multiplicative hash spreads
 * them. */
static inline hd_list *bucket_of(const hd_map *map, uintptr_t key)
{
    uint64_t hash = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return &map->buckets[(hash >> 32) & map->mask];
}

/* Changes the number of buckets. It may fail for want of memory. Then the chains are longer, or the table is larger,
 * and nothing else is wrong. */
static void resize(hd_map *map, size_t buckets)
{
    hd_map resized;
    if (allocate(&resized, buckets) < 0) return;
    for (size_t i = 0; i <= map->mask; i++) {
        hd_node *node;
        while ((node = hd_list_first(&map->buckets[i]))) {
            hd_node_remove(node);
            hd_list_push_back(bucket_of(&resized, HD_CONTAINER_OF(node, hd_map_node, node)->key), node);
        }
    }
    free(map->buckets);
    map->buckets = resized.buckets;
    map->mask = resized.mask;
}

void hd_map_add(hd_map *map, hd_map_node *node, uintptr_t key)
{
    if (HD_UNLIKELY(map->count > map->mask)) resize(map, (map->mask + 1) * 2);
    node->key = key;
    hd_list_push_back(bucket_of(map, key), &node->node);
    map->count++;
}

void hd_map_remove(hd_map *map, hd_map_node *node)
{
    HD_ASSERT(map->count > 0);
    hd_node_remove(&node->node);
    map->count--;
    /* The garbage collector walks every bucket, so the buckets of a burst must not stay. */
    if (HD_UNLIKELY(map->count < map->mask / 8 && map->mask >= INITIAL_BUCKETS)) resize(map, (map->mask + 1) / 2);
}

static hd_map_node *find_from(const hd_list *bucket, hd_node *node, uintptr_t key)
{
    for (; node != &bucket->head; node = node->next) {
        hd_map_node *entry = HD_CONTAINER_OF(node, hd_map_node, node);
        if (entry->key == key) return entry;
    }
    return NULL;
}

hd_map_node *hd_map_find(const hd_map *map, uintptr_t key)
{
    hd_list *bucket = bucket_of(map, key);
    return find_from(bucket, bucket->head.next, key);
}

hd_map_node *hd_map_find_next(const hd_map *map, const hd_map_node *node)
{
    return find_from(bucket_of(map, node->key), node->node.next, node->key);
}

void hd_map_each(const hd_map *map, void (*visit)(hd_map_node *node, void *argument), void *argument)
{
    for (size_t i = 0; i <= map->mask; i++) {
        hd_list *bucket = &map->buckets[i];
        for (hd_node *node = bucket->head.next; node != &bucket->head; node = node->next)
            visit(HD_CONTAINER_OF(node, hd_map_node, node), argument);
    }
}
