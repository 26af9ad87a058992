/* core/list.h: every operation on small lists, a random run against an array, and the assertions that catch a
 * node that is linked or unlinked twice. */
#include "core/list.h"
#include "test.h"

enum { NODES = 32 };

typedef struct {
    int number;
    hd_node node;
} entry;

static entry entries[NODES];
static hd_list list;
static int model[NODES], model_count;

static void reset(void)
{
    hd_list_init(&list);
    model_count = 0;
    for (int i = 0; i < NODES; i++) {
        entries[i].number = i;
        hd_node_init(&entries[i].node);
    }
}

static void model_insert(int at, int number)
{
    memmove(&model[at + 1], &model[at], (size_t)(model_count - at) * sizeof(*model));
    model[at] = number;
    model_count++;
}

static int model_index(int number)
{
    for (int i = 0; i < model_count; i++)
        if (model[i] == number) return i;
    return -1;
}

static void model_remove(int at)
{
    memmove(&model[at], &model[at + 1], (size_t)(model_count - at - 1) * sizeof(*model));
    model_count--;
}

static void compare(void)
{
    CHECK_EQ(model_count == 0, hd_list_empty(&list));
    int i = 0;
    for (hd_node *node = hd_list_first(&list); node; node = hd_list_after(&list, node), i++) {
        CHECK(i < model_count);
        CHECK_EQ(model[i], HD_CONTAINER_OF(node, entry, node)->number);
    }
    CHECK_EQ(model_count, i);
    i = model_count;
    for (hd_node *node = list.head.prev; node != &list.head; node = node->prev)
        CHECK_EQ(model[--i], HD_CONTAINER_OF(node, entry, node)->number);
    CHECK_EQ(0, i);
    for (int n = 0; n < NODES; n++) CHECK_EQ(model_index(n) >= 0, hd_node_linked(&entries[n].node));
}

TEST(empty_list)
{
    reset();
    CHECK(hd_list_empty(&list));
    CHECK(!hd_list_first(&list));
    compare();
}

TEST(one_element)
{
    reset();
    for (int round = 0; round < 3; round++) {
        if (round % 2)
            hd_list_push_back(&list, &entries[0].node);
        else
            hd_list_push_front(&list, &entries[0].node);
        CHECK(hd_list_first(&list) == &entries[0].node);
        CHECK(!hd_list_after(&list, &entries[0].node));
        hd_node_remove(&entries[0].node);
        CHECK(hd_list_empty(&list));
        CHECK(!hd_node_linked(&entries[0].node));
    }
}

/* Lists of 0 to 5 nodes, built in every mix of front and back, taken apart in every order. */
TEST(exhaustive_small_lists)
{
    for (int size = 0; size <= 5; size++) {
        int orders = 1;
        for (int i = 2; i <= size; i++) orders *= i;
        for (int fronts = 0; fronts < 1 << size; fronts++) {
            for (int order = 0; order < orders; order++) {
                reset();
                for (int i = 0; i < size; i++) {
                    bool front = fronts >> i & 1;
                    model_insert(front ? 0 : model_count, i);
                    (front ? hd_list_push_front : hd_list_push_back)(&list, &entries[i].node);
                    compare();
                }
                for (int left = size, code = order; left > 0; left--) {
                    int at = code % left;
                    code /= left;
                    hd_node_remove(&entries[model[at]].node);
                    model_remove(at);
                    compare();
                }
            }
        }
    }
}

TEST(random_against_array)
{
    reset();
    for (int step = 0; step < 20000; step++) {
        int number = (int)rnd(NODES), at = model_index(number);
        if (at >= 0) {
            hd_node_remove(&entries[number].node);
            model_remove(at);
        } else if (model_count == 0 || rnd(3) == 0) {
            bool front = rnd(2);
            model_insert(front ? 0 : model_count, number);
            (front ? hd_list_push_front : hd_list_push_back)(&list, &entries[number].node);
        } else {
            int before = (int)rnd((uint64_t)model_count);
            hd_node_insert(&entries[number].node, &entries[model[before]].node);
            model_insert(before, number);
        }
        compare();
    }
}

/* The nodes stand behind the nodes of the other list, in their order, and their own list is empty. */
TEST(moved_nodes_keep_their_order)
{
    for (int size = 0; size <= 3; size++) {
        for (int moved = 0; moved <= 3; moved++) {
            hd_list other;
            hd_list_init(&other);
            reset();
            for (int i = 0; i < size + moved; i++) {
                hd_list_push_back(i < size ? &list : &other, &entries[i].node);
                model_insert(model_count, i);
            }
            hd_list_move(&list, &other);
            compare();
            CHECK(hd_list_empty(&other));
        }
    }
}

TEST(double_link_and_unlink_are_caught)
{
    reset();
    CHECK_ABORTS(hd_node_remove(&entries[0].node));
    hd_list_push_back(&list, &entries[0].node);
    CHECK_ABORTS(hd_list_push_back(&list, &entries[0].node));
    CHECK_ABORTS({
        hd_node copy = entries[0].node; /* a copied node is in no list */
        hd_node_remove(&copy);
    });
}

int main(int argc, char **argv)
{
    test_start(argc, argv);
    RUN(empty_list);
    RUN(one_element);
    RUN(exhaustive_small_lists);
    RUN(random_against_array);
    RUN(moved_nodes_keep_their_order);
    RUN(double_link_and_unlink_are_caught);
    return test_finish();
}
