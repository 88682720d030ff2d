#include "nodes.h"

#include <errno.h>
#include <stdint.h>

#include "base/bits.h"
#include "check.h"
#include "config/policy.h"
#include "hakmem.h"
#include "span/limit.h"
#include "span/span.h"

static unsigned char mark_of(const struct node *node, size_t at)
{
    return (unsigned char)((uintptr_t)node >> 4 ^ node->bytes ^ at);
}

/* The first page: all else of a large block may stay untouched. */
static void fill(struct node *node)
{
    unsigned char *bytes = (unsigned char *)node;
    for (size_t i = sizeof *node; i < min_size(node->bytes, 4096); i++)
        bytes[i] = mark_of(node, i);
}

static void check_node(const struct node *node)
{
    const unsigned char *bytes = (const unsigned char *)node;
    for (size_t i = sizeof *node; i < min_size(node->bytes, 4096); i++)
        CHECK(bytes[i] == mark_of(node, i));
}

struct node *nodes_add(struct node *list, struct node *node, size_t bytes)
{
    *node = (struct node){list, bytes};
    fill(node);
    return node;
}

struct node *nodes_take(struct node *list, size_t bytes, size_t total)
{
    for (size_t done = 0; done < total; done += bytes) {
        struct node *node = hak_malloc(bytes);
        CHECK(node != NULL);
        list = nodes_add(list, node, bytes);
    }
    return list;
}

struct node *nodes_exhaust(struct node *list, size_t bytes)
{
    for (;;) {
        errno = 0;
        struct node *node = hak_malloc(bytes);
        if (node == NULL) {
            CHECK(errno == ENOMEM);
            return list;
        }
        list = nodes_add(list, node, bytes);
        CHECK(limit_held() <= policy.hard_limit);
    }
}

void nodes_check(const struct node *list)
{
    for (; list != NULL; list = list->next)
        check_node(list);
}

void nodes_free(struct node *list)
{
    while (list != NULL) {
        struct node *next = list->next;
        check_node(list);
        hak_free(list);
        list = next;
    }
}

void leave_fragments(void)
{
    void *blocks[32];
    policy.bigcache_bytes = 0;
    for (int i = 0; i < 32; i++)
        CHECK((blocks[i] = hak_malloc(512 * KIB)) != NULL);
    for (int i = 0; i < 32; i += 2)
        hak_free(blocks[i]);
    CHECK(span_dirty_bytes() == 8 * MIB);
}
