/* heap/relief.h, api/limit.c: what is refused at a hard limit, and what is given back before. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "api/stats.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "nodes.h"
#include "span/limit.h"
#include "worker.h"

static void use_and_free(void *unused)
{
    (void)unused;
    static void *blocks[4000];
    for (int i = 0; i < 4000; i++)
        blocks[i] = hak_malloc(900);
    for (int i = 0; i < 4000; i++)
        hak_free(blocks[i]);
}

/* At the limit by blocks of each kind: all else stays whole, and what is given back is had again. */
static void hard_limit_refuses(void)
{
    static const size_t sizes[] = {24, 700, 4096, 20000, 32768, 40000, 300000, 3000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct node *held = nodes_take(NULL, 1000, 2 * MIB);
        held = nodes_take(held, 200000, 2 * MIB);
        CHECK(hak_set_limit(0, limit_held() + 12 * MIB) == 0);
        struct node *list = nodes_exhaust(NULL, sizes[i]);
        CHECK(list != NULL);
        errno = 0;
        CHECK(hak_malloc(13 * MIB) == NULL && errno == ENOMEM);
        CHECK(hak_calloc(30, MIB) == NULL);
        CHECK(hak_aligned_alloc(1 << 20, 12 * MIB) == NULL);
        nodes_check(list);
        nodes_check(held);
        struct node *next = list->next;
        hak_free(list);
        list = hak_malloc(sizes[i]);
        CHECK(list != NULL);
        nodes_free(nodes_add(next, list, sizes[i]));
        /* By blocks of another kind. */
        list = nodes_take(NULL, sizes[(i + 3) % 8], 8 * MIB);
        nodes_free(list);
        nodes_check(held);
        nodes_free(held);
    }
}

/* What the thread itself and ended ones have cached serves before anything is refused. */
static void hard_limit_uses_what_is_cached(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, use_and_free, NULL);
    worker_stop(&worker);
    use_and_free(NULL);
    hak_free(hak_malloc(4 * MIB));
    hak_free(hak_malloc(700 * KIB));
    CHECK(hak_set_limit(0, limit_held()) == 0);
    struct node *list = nodes_take(NULL, 17000, 4 * MIB);
    struct hak_stats stats;
    list = nodes_exhaust(list, 17000);
    stats_read(&stats);
    CHECK(stats.bigcache_bytes == 0);
    CHECK(stats.cached_bytes < 17000);
    CHECK(stats.dirty_bytes < size_classes[size_class_of(17000)].units * UNIT_SIZE);
    nodes_free(list);
}

static void aligned_blocks_are_refused(void)
{
    heap_own();
    CHECK(hak_set_limit(0, limit_held() + 4 * MIB) == 0);
    size_t got = 0;
    while (hak_aligned_alloc(4096, 100) != NULL)
        got++;
    CHECK(errno == ENOMEM && got >= 900);
    void *out = NULL;
    errno = 66;
    for (void *before = NULL; hak_posix_memalign(&out, 1 << 16, 100) != ENOMEM; before = out)
        CHECK(out != before);
    void *last = out;
    CHECK(hak_posix_memalign(&out, 1 << 16, 100) == ENOMEM);
    CHECK(out == last && errno == 66);
}

/* Where realloc may grow: in place, by remapping, by copying; each refused, and the old block is as it was. */
static void refused_growth_keeps_the_block(void)
{
    static const size_t sizes[] = {100, 10000, 100000, 2000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int neighbour = 0; neighbour < 2; neighbour++) {
            CHECK(hak_set_limit(0, 0) == 0);
            unsigned char *block = hak_malloc(sizes[i]);
            void *next = neighbour ? hak_malloc(sizes[i]) : NULL;
            memset(block, 0x3c, sizes[i]);
            CHECK(hak_set_limit(0, limit_held() + 2 * MIB) == 0);
            errno = 0;
            CHECK(hak_realloc(block, 8 * MIB) == NULL && errno == ENOMEM);
            CHECK(hak_realloc(block, SIZE_MAX / 4) == NULL);
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK(block[at] == 0x3c);
            CHECK(hak_malloc_usable_size(block) >= sizes[i]);
            /* Within the limit it grows. */
            block = hak_realloc(block, sizes[i] + 200000);
            CHECK(block != NULL);
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK(block[at] == 0x3c);
            hak_free(block);
            hak_free(next);
            hak_malloc_trim(0);
        }
    }
}

/* What a large block needs is held by written memory in pieces that are too short for it. */
static void large_blocks_make_room(void)
{
    heap_own();
    leave_fragments();
    CHECK(hak_set_limit(0, limit_held()) == 0);
    void *block = hak_malloc(6 * MIB);
    CHECK(block != NULL && span_dirty_bytes() == 0);
    CHECK(hak_malloc(3 * MIB) == NULL);
    hak_free(block);
    CHECK(hak_aligned_alloc(2 * MIB, 6 * MIB) != NULL);
}

static void growth_purges(void)
{
    heap_own();
    unsigned char *block = hak_malloc(4 * MIB);
    void *in_its_way = hak_malloc(4 * MIB);
    CHECK(block != NULL && in_its_way != NULL);
    memset(block, 5, 4 * MIB);
    leave_fragments();
    /* Too little for a second copy, enough for the difference. */
    CHECK(hak_set_limit(0, limit_held() - 4 * MIB) == 0);
    unsigned char *grown = hak_realloc(block, 7 * MIB);
    CHECK(grown != NULL && span_dirty_bytes() == 0);
    for (size_t i = 0; i < 4 * MIB; i++)
        CHECK(grown[i] == 5);
}

/* The units that a block needs to grow are in caches. */
static void growth_makes_room(void)
{
    heap_own();
    unsigned char *block = hak_malloc(4 * MIB);
    void *in_its_way = hak_malloc(4 * MIB);
    void *cached = hak_malloc(6 * MIB);
    memset(block, 5, 4 * MIB);
    CHECK(hak_set_limit(0, limit_held()) == 0);
    hak_free(cached);
    block = hak_realloc(block, 9 * MIB);
    CHECK(block != NULL);
    for (size_t i = 0; i < 4 * MIB; i++)
        CHECK(block[i] == 5);
    hak_free(in_its_way);
}

/* A refill that gets a part of what it wants is content; the next that gets nothing is refused, and only that. */
static void refill_in_the_middle(void)
{
    enum { CLASS_BYTES = 2048 };
    heap_own();
    for (size_t more = 0; more < 12; more++) {
        struct node *list = nodes_take(NULL, CLASS_BYTES, 256 * KIB);
        CHECK(hak_set_limit(0, limit_held() + more * UNIT_SIZE) == 0);
        list = nodes_exhaust(list, CLASS_BYTES);
        CHECK(hak_malloc(CLASS_BYTES) == NULL);
        struct node *other = hak_malloc(CLASS_BYTES - 1);
        CHECK(other == NULL);
        /* Each block that comes back is one that may be had. */
        for (int i = 0; i < 20; i++) {
            struct node *first = list;
            list = list->next;
            hak_free(first);
            struct node *again = hak_malloc(CLASS_BYTES);
            CHECK(again != NULL);
            list = nodes_add(list, again, CLASS_BYTES);
            CHECK(hak_malloc(CLASS_BYTES) == NULL);
        }
        nodes_free(list);
        CHECK(hak_set_limit(0, 0) == 0);
        hak_malloc_trim(0);
    }
}

static void prewarm_stops_at_the_limit(void)
{
    heap_own();
    CHECK(hak_set_limit(0, limit_held() + MIB) == 0);
    size_t ready = hak_prewarm(32768, 100);
    CHECK(ready < 40);
    for (size_t i = 0; i < ready; i++)
        CHECK(hak_malloc(32768) != NULL);
}

/* A signal handler that interrupted the door gets what caches hold, too. */
static void without_a_heap_caches_serve(void)
{
    struct heap *heap = heap_own();
    hak_free(hak_malloc(4 * MIB));
    CHECK(hak_set_limit(0, limit_held()) == 0);
    heap->in_door = 1;
    void *small = hak_malloc(1000);
    void *large = hak_malloc(MIB);
    CHECK(small != NULL && large != NULL);
    CHECK(bigcache_bytes() == 0);
    CHECK(hak_malloc(8 * MIB) == NULL);
    hak_free(small);
    hak_free(large);
    heap->in_door = 0;
    CHECK(hak_malloc(MIB) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(hard_limit_refuses),
        UNIT_TEST(hard_limit_uses_what_is_cached),
        UNIT_TEST(aligned_blocks_are_refused),
        UNIT_TEST(refused_growth_keeps_the_block),
        UNIT_TEST(large_blocks_make_room),
        UNIT_TEST(growth_purges),
        UNIT_TEST(growth_makes_room),
        UNIT_TEST(refill_in_the_middle),
        UNIT_TEST(prewarm_stops_at_the_limit),
        UNIT_TEST(without_a_heap_caches_serve),
    };
    return cmocka_run_group_tests_name("relief_hard", tests, NULL, NULL);
}
