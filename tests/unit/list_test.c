/* base/list.h: random pushes and removals beside an array that says what the list must be. */
#include "unit.h"

#include <string.h>

#include "base/list.h"
#include "random.h"

enum { NODES = 20, STEPS = 20000 };

struct item {
    int number;
    struct list_node link;
    bool listed;
};

static void check_order(const struct list *list, struct item **order, size_t count)
{
    size_t i = 0;
    const struct list_node *before = NULL;
    for (struct list_node *node = list->first; node != NULL; before = node, node = node->next, i++) {
        CHECK(i < count);
        CHECK(LIST_ENTRY(node, struct item, link) == order[i]);
        CHECK(node->prev == before);
    }
    CHECK(i == count);
    CHECK(list->last == before);
}

static void insert_at(struct item **order, size_t *count, size_t at, struct item *item)
{
    memmove(order + at + 1, order + at, (*count - at) * sizeof *order);
    order[at] = item;
    ++*count;
}

static void remove_from(struct item **order, size_t *count, struct item *item)
{
    size_t at = 0;
    while (order[at] != item)
        at++;
    --*count;
    memmove(order + at, order + at + 1, (*count - at) * sizeof *order);
}

static void follows_a_model(void)
{
    uint64_t seed = 2;
    struct list list = {0};
    struct item items[NODES] = {0};
    struct item *order[NODES];
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        struct item *item = &items[random_below(&seed, NODES)];
        if (item->listed) {
            list_remove(&list, &item->link);
            remove_from(order, &count, item);
        } else if (random_below(&seed, 2) == 0) {
            list_push_front(&list, &item->link);
            insert_at(order, &count, 0, item);
        } else {
            list_push_back(&list, &item->link);
            insert_at(order, &count, count, item);
        }
        item->listed = !item->listed;
        check_order(&list, order, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(follows_a_model)};
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
