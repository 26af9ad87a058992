/* core/map.h: random runs against an array, with few keys (long chains, several nodes a key) and with many
 * (growth), for words shaped like addresses. */
#include "core/map.h"
#include "test.h"

enum { NODES = 600 };

typedef struct {
    hd_map_node node;
    bool in;
} entry;

static entry entries[NODES];
static hd_map map;

static uintptr_t key_of(uint64_t number, int shape)
{
    switch (shape) {
    case 0: return 0x7f0000001000 + number * 40; /* objects of a heap page */
    case 1: return number << 48;                 /* only the top bits differ */
    case 2: return number;
    default: return (uintptr_t)(number * UINT64_C(0xD1342543DE82EF95));
    }
}

static void count_visit(hd_map_node *node, void *seen)
{
    ((int *)seen)[HD_CONTAINER_OF(node, entry, node) - entries]++;
}

static int model_count(uintptr_t key)
{
    int count = 0;
    for (int i = 0; i < NODES; i++) count += entries[i].in && entries[i].node.key == key;
    return count;
}

static void compare_key(uintptr_t key)
{
    int found = 0;
    for (hd_map_node *node = hd_map_find(&map, key); node; node = hd_map_find_next(&map, node)) {
        CHECK_EQ(key, node->key);
        CHECK(HD_CONTAINER_OF(node, entry, node)->in);
        found++;
        CHECK(found <= NODES);
    }
    CHECK_EQ(model_count(key), found);
}

static void compare_all(void)
{
    int seen[NODES] = {0}, total = 0;
    hd_map_each(&map, count_visit, seen);
    for (int i = 0; i < NODES; i++) {
        CHECK_EQ(entries[i].in, seen[i]);
        CHECK_EQ(entries[i].in, hd_map_node_linked(&entries[i].node));
        total += seen[i];
    }
    CHECK_EQ(total, map.count);
}

static void reset(void)
{
    memset(entries, 0, sizeof(entries));
    CHECK_EQ(0, hd_map_init(&map));
}

TEST(empty_map)
{
    reset();
    CHECK(!hd_map_find(&map, 0));
    CHECK(!hd_map_find(&map, 8));
    compare_all();
    hd_map_forget(&map);
    compare_all();
    hd_map_free(&map);
}

TEST(one_node)
{
    reset();
    for (int round = 0; round < 2; round++) {
        hd_map_add(&map, &entries[0].node, 0); /* 0 is a key like any other */
        CHECK(hd_map_find(&map, 0) == &entries[0].node);
        CHECK(!hd_map_find_next(&map, &entries[0].node));
        CHECK(!hd_map_find(&map, 1));
        hd_map_remove(&map, &entries[0].node);
        CHECK(!hd_map_find(&map, 0));
        CHECK(!hd_map_node_linked(&entries[0].node));
    }
    hd_map_free(&map);
}

TEST(nodes_of_one_key_come_in_order_of_arrival)
{
    reset();
    for (int i = 0; i < 5; i++) hd_map_add(&map, &entries[i].node, 40);
    hd_map_node *node = hd_map_find(&map, 40);
    for (int i = 0; i < 5; i++, node = hd_map_find_next(&map, node)) CHECK(node == &entries[i].node);
    CHECK(!node);
    hd_map_free(&map);
}

static void random_run(int keys, int shape)
{
    reset();
    for (int step = 0; step < 5000; step++) {
        entry *entry = &entries[rnd(NODES)];
        if (entry->in) {
            hd_map_remove(&map, &entry->node);
        } else {
            hd_map_add(&map, &entry->node, key_of(rnd((uint64_t)keys), shape));
        }
        entry->in = !entry->in;
        compare_key(entry->node.key);
        compare_key(key_of(rnd((uint64_t)keys), shape));
        if (step % 100 == 0) compare_all();
    }
    compare_all();
    if (rnd(2)) {
        hd_map_forget(&map); /* the nodes' memory may be gone: it must not be touched, so they still look linked */
        CHECK_EQ(0, map.count);
        for (int i = 0; i < NODES; i++) CHECK_EQ(entries[i].in, hd_map_node_linked(&entries[i].node));
        CHECK(!hd_map_find(&map, entries[0].node.key));
    }
    hd_map_free(&map);
}

TEST(random_against_array)
{
    const int keys[] = {1, 3, 50, 100000};
    for (int i = 0; i < 4; i++)
        for (int shape = 0; shape < 4; shape++) random_run(keys[i], shape);
}

/* Chains must stay short for every shape of key that occurs: a map of 100,000 waits is looked up at every wake. */
TEST(chains_stay_short)
{
    enum { MANY = 100000 };
    entry *many = calloc(MANY, sizeof(*many));
    CHECK(many);
    for (int shape = 0; shape < 4; shape++) {
        if (shape == 1) continue; /* no real word looks like that */
        reset();
        for (int i = 0; i < MANY; i++) hd_map_add(&map, &many[i].node, key_of((uint64_t)i, shape));
        size_t longest = 0;
        for (size_t i = 0; i <= map.mask; i++) {
            size_t length = 0;
            for (hd_node *node = hd_list_first(&map.buckets[i]); node; node = hd_list_after(&map.buckets[i], node))
                length++;
            if (length > longest) longest = length;
        }
        if (longest > 16) FAIL("a chain of %zu with keys of shape %d", longest, shape);
        for (int i = 0; i < MANY; i++) hd_map_remove(&map, &many[i].node);
        CHECK_EQ(0, map.count);
        hd_map_free(&map);
    }
    free(many);
}

/* A collection walks every bucket, so a burst must not leave a large table behind. */
TEST(it_shrinks)
{
    enum { MANY = 20000, LEFT = 3 };
    reset();
    entry *many = calloc(MANY, sizeof(entry));
    CHECK(many);
    for (int i = 0; i < MANY; i++) hd_map_add(&map, &many[i].node, i % (MANY / LEFT) ? 8 * i : 8);
    CHECK(map.mask + 1 >= MANY);
    for (int i = 0; i < MANY; i++)
        if (i % (MANY / LEFT)) hd_map_remove(&map, &many[i].node);
    CHECK(map.mask + 1 <= 128);
    hd_map_node *node = hd_map_find(&map, 8);
    for (int i = 0; i < MANY; i += MANY / LEFT, node = hd_map_find_next(&map, node)) CHECK(node == &many[i].node);
    CHECK(!node);
    hd_map_free(&map);
    free(many);
}

TEST(double_remove_is_caught)
{
    reset();
    hd_map_add(&map, &entries[0].node, 1);
    CHECK_ABORTS(hd_map_add(&map, &entries[0].node, 2));
    hd_map_add(&map, &entries[1].node, 1);
    hd_map_remove(&map, &entries[0].node);
    CHECK_ABORTS(hd_map_remove(&map, &entries[0].node));
    hd_map_remove(&map, &entries[1].node);
    CHECK_ABORTS(hd_map_remove(&map, &entries[1].node));
    hd_map_free(&map);
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(empty_map);
    RUN(one_node);
    RUN(nodes_of_one_key_come_in_order_of_arrival);
    RUN(random_against_array);
    RUN(chains_stay_short);
    RUN(it_shrinks);
    RUN(double_remove_is_caught);
    return test_finish();
}
