/* heap/relief.h, api/limit.c: programs at their limits. */
#include "unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "api/stats.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heap/fork.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "span/limit.h"
#include "worker.h"

static size_t dirty_bytes(void)
{
    struct span_stats stats;
    span_stats(&stats);
    return stats.dirty_bytes;
}

/* A list of blocks that lies in themselves. */
struct node {
    struct node *next;
    size_t bytes;
};

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

static struct node *add(struct node *list, struct node *node, size_t bytes)
{
    *node = (struct node){list, bytes};
    fill(node);
    return node;
}

static void check_list(const struct node *list)
{
    for (; list != NULL; list = list->next)
        check_node(list);
}

static void free_list(struct node *list)
{
    while (list != NULL) {
        struct node *next = list->next;
        check_node(list);
        hak_free(list);
        list = next;
    }
}

/* Blocks of `bytes` until `total` are had; none may be refused. */
static struct node *take(struct node *list, size_t bytes, size_t total)
{
    for (size_t done = 0; done < total; done += bytes) {
        struct node *node = hak_malloc(bytes);
        CHECK(node != NULL);
        list = add(list, node, bytes);
    }
    return list;
}

/* Blocks of `bytes` until one is refused. */
static struct node *exhaust(struct node *list, size_t bytes)
{
    for (;;) {
        errno = 0;
        struct node *node = hak_malloc(bytes);
        if (node == NULL) {
            CHECK(errno == ENOMEM);
            return list;
        }
        list = add(list, node, bytes);
        CHECK(limit_held() <= policy.hard_limit);
    }
}

static void fragments_of_written_memory(void)
{
    void *blocks[32];
    policy.bigcache_bytes = 0;
    for (int i = 0; i < 32; i++)
        CHECK((blocks[i] = hak_malloc(512 * KIB)) != NULL);
    for (int i = 0; i < 32; i += 2)
        hak_free(blocks[i]);
    CHECK(dirty_bytes() == 8 * MIB);
}

static void use_and_free(void *unused)
{
    (void)unused;
    static void *blocks[4000];
    for (int i = 0; i < 4000; i++)
        blocks[i] = hak_malloc(900);
    for (int i = 0; i < 4000; i++)
        hak_free(blocks[i]);
}

/* ---- What is given back first. */

static size_t calls;
static size_t last_held;
static size_t last_limit;

static void count_call(size_t held, size_t limit, void *data)
{
    CHECK(data == &calls);
    CHECK(held > limit);
    CHECK(bigcache_bytes() == 0 && dirty_bytes() == 0);
    last_held = held;
    last_limit = limit;
    calls++;
}

static void listen(void (*callback)(size_t held, size_t limit, void *data))
{
    hak_set_limit_callback(callback, &calls);
}

static void soft_limit_empties_the_bigcache(void)
{
    heap_own();
    hak_free(hak_malloc(16 * MIB));
    CHECK(bigcache_bytes() == 16 * MIB);
    CHECK(hak_set_limit(24 * MIB, 0) == 0);
    listen(count_call);
    struct node *list = take(NULL, 1000, 6 * MIB);
    CHECK(bigcache_bytes() == 16 * MIB);
    list = take(list, 1000, 4 * MIB);
    CHECK(bigcache_bytes() == 0);
    CHECK(dirty_bytes() == 0);
    CHECK(limit_held() < 16 * MIB);
    CHECK(calls == 0);
    free_list(list);
}

static void soft_limit_purges(void)
{
    heap_own();
    fragments_of_written_memory();
    size_t before = limit_held();
    CHECK(hak_set_limit(before + 8 * MIB, 0) == 0);
    listen(count_call);
    CHECK(hak_malloc(12 * MIB) != NULL); /* too long for any of them */
    CHECK(dirty_bytes() == 0);
    CHECK(limit_held() < before + 8 * MIB);
    CHECK(calls == 0);
}

/* Threads that end at once leave one heap warm; the others are cleaned, but mail comes to them later. */
static void soft_limit_empties_idle_heaps(void)
{
    enum { THREADS = 4, BLOCKS = 400 };
    static void *blocks[THREADS][BLOCKS];
    struct view *words[THREADS];
    struct heap *heap = heap_own();
    for (int i = 0; i < THREADS; i++) {
        struct heap *other = heap_other(&words[i]);
        for (int j = 0; j < BLOCKS; j++)
            blocks[i][j] = magazine_pop(other, size_class_of(900));
    }
    for (int i = 0; i < THREADS; i++) {
        struct heap *other = words[i]->heap;
        store_relaxed(&other->in_door, 1u);
        life_retire(other);
        for (int j = 0; j < BLOCKS; j++)
            hak_free(blocks[i][j]);
        mail_post_all(heap);
        CHECK(mail_waits(other));
    }
    CHECK(hak_set_limit(1, 0) == 0);
    CHECK(hak_malloc(MIB) != NULL);
    for (const struct heap *other = life_heaps(); other != NULL; other = other->next)
        CHECK(other == heap || (other->inbox == NULL && magazine_count(other, size_class_of(900)) == 0));
    CHECK(dirty_bytes() == 0);
}

/* The memory that passes the limit is not handed out before the rest has gone. */
static void gives_back_within_the_request(void)
{
    static const size_t sizes[] = {100, 5000, 32768, 40000, 3000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK(hak_set_limit(0, 0) == 0);
        hak_free(hak_malloc(4 * MIB));
        CHECK(hak_set_limit(1, 0) == 0);
        size_t held = limit_held();
        while (limit_held() == held && bigcache_bytes() != 0)
            CHECK(hak_malloc(sizes[i]) != NULL);
        CHECK(bigcache_bytes() == 0 && dirty_bytes() == 0);
    }
}

static void requested_bytes_stay_exact(void)
{
    struct heap *heap = heap_own();
    int64_t before = heap->granted - heap->view.budget;
    CHECK(hak_set_limit(1, 0) == 0);
    free_list(take(NULL, 2048, 8 * MIB));
    CHECK(heap->granted - heap->view.budget == before + (int64_t)(8 * MIB));
}

/* ---- The callback. */

static void called_when_nothing_else_helps(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listen(count_call);
    struct node *list = take(NULL, 3000, 7 * MIB);
    CHECK(calls == 0);
    list = take(list, 3000, 2 * MIB);
    CHECK(calls == 1);
    CHECK(last_limit == 8 * MIB && last_held < 9 * MIB);
    list = take(list, 100000, 50 * MIB);
    CHECK(calls == 1);
    free_list(list);
}

static void called_once_a_crossing(void)
{
    heap_own();
    fake_clock_set(1000);
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listen(count_call);
    for (size_t crossing = 1; crossing <= 5; crossing++) {
        fake_clock_set(1000 * crossing);
        free_list(take(NULL, 3000, 16 * MIB));
        CHECK(calls == crossing);
        hak_malloc_trim(0);
        CHECK(limit_held() < 8 * MIB);
    }
    /* Down and up again at once: not more often than every 100 ms. */
    free_list(take(NULL, 3000, 16 * MIB));
    CHECK(calls == 5);
}

static int depth;
static struct node *cache;

/* As a program does that drops what it can do without. */
static void work_in_callback(size_t held, size_t limit, void *data)
{
    CHECK(++depth == 1);
    CHECK(held > limit && data == &calls);
    CHECK(view_load()->heap->in_door == 0);
    CHECK(!fork_holds_any_lock());
    errno = 77;
    free_list(cache);
    cache = NULL;
    /* More of everything, far beyond the limit. */
    struct node *list = take(take(NULL, 700, 4 * MIB), 300000, 30 * MIB);
    list = hak_realloc(list, 3 * MIB);
    CHECK(list != NULL);
    free_list(list->next);
    hak_free(list);
    hak_malloc_trim(0);
    calls++;
    depth--;
}

static void callback_may_allocate_and_free(void)
{
    static const size_t sizes[] = {24, 3000, 30000, 100000, 1000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        calls = 0;
        fake_clock_set(1000 * (i + 1));
        CHECK(hak_set_limit(16 * MIB, 0) == 0);
        listen(work_in_callback);
        cache = take(NULL, 5000, 8 * MIB);
        errno = 55;
        struct node *list = take(NULL, sizes[i], 12 * MIB);
        CHECK(errno == 55);
        CHECK(calls == 1 && cache == NULL);
        free_list(list);
        hak_malloc_trim(0);
    }
}

static void callback_may_come_in_any_call(void)
{
    heap_own();
    static const size_t step = 512 * KIB;
    for (int kind = 0; kind < 6; kind++) {
        calls = 0;
        fake_clock_set(1000 * (uint64_t)(kind + 1));
        CHECK(hak_set_limit(limit_held() + 4 * MIB, 0) == 0);
        listen(work_in_callback);
        unsigned char *block = hak_malloc(300000);
        CHECK(block != NULL);
        memset(block, 9, 300000);
        for (size_t n = 1; calls == 0; n++) {
            CHECK(n < 10000);
            void *p = block;
            switch (kind) {
            case 0:
                p = hak_calloc(1, step);
                break;
            case 1:
                p = hak_aligned_alloc(1 << 16, step);
                break;
            case 2:
                p = hak_aligned_alloc(4096, 100);
                break;
            case 3:
                block = p = hak_realloc(block, 300000 + n * step);
                break;
            case 4:
                p = hak_realloc(hak_malloc(100), 20000);
                break;
            default:
                CHECK(hak_prewarm(1000 + 1000 * n, 40) > 0);
            }
            CHECK(p != NULL);
        }
        for (size_t i = 0; i < 300000; i++)
            CHECK(block[i] == 9);
        CHECK(calls == 1);
    }
}

static void raise_limit(size_t held, size_t limit, void *data)
{
    CHECK(data == &calls);
    calls++;
    CHECK(hak_set_limit(2 * limit, 4 * held) == 0);
}

static void callback_may_change_the_limit(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listen(raise_limit);
    struct node *list = take(NULL, 3000, 14 * MIB);
    CHECK(calls == 1);
    CHECK(policy.soft_limit == 16 * MIB && policy.hard_limit >= 32 * MIB);
    fake_clock_set(UINT64_MAX / 2);
    list = take(list, 3000, 6 * MIB);
    CHECK(calls == 2);
    free_list(list);
}

static void end_listening(size_t held, size_t limit, void *data)
{
    (void)held;
    (void)limit;
    (void)data;
    calls++;
    hak_set_limit_callback(NULL, NULL);
}

static void callback_may_go(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 0) == 0);
    listen(end_listening);
    free_list(take(NULL, 3000, 14 * MIB));
    CHECK(calls == 1);
}

static void illegal_limits_change_nothing(void)
{
    CHECK(hak_set_limit(5, 7) == 0);
    CHECK(hak_set_limit(8, 7) == EINVAL);
    CHECK(hak_set_limit(SIZE_MAX, 1) == EINVAL);
    CHECK(policy.soft_limit == 5 && policy.hard_limit == 7);
    CHECK(hak_set_limit(0, 7) == 0);
    CHECK(policy.soft_limit == SIZE_MAX && policy.hard_limit == 7);
    CHECK(hak_set_limit(7, 7) == 0);
    CHECK(hak_set_limit(0, 0) == 0);
    CHECK(policy.soft_limit == SIZE_MAX && policy.hard_limit == SIZE_MAX);
}

/* ---- The control group's. */

static void control_group_limits_softly(void)
{
    heap_own();
    fake_os_set_memory_limit(48 * MIB);
    listen(count_call);
    struct node *list = take(NULL, 3000, 20 * MIB);
    CHECK(fake_os_memory_limit_reads() == 0);
    list = take(list, 3000, 18 * MIB);
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(policy.soft_limit == 42 * MIB);
    CHECK(calls == 0);
    list = take(list, 3000, 20 * MIB);
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(calls == 1 && last_limit == 42 * MIB);
    free_list(list);
}

/* It may be lower than where it is looked for. */
static void control_group_may_be_small(void)
{
    heap_own();
    fake_os_set_memory_limit(0);
    listen(count_call);
    free_list(take(NULL, 100000, 40 * MIB));
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(calls == 1 && last_limit == 1);
}

static void control_group_is_not_asked_when_limits_are_set(void)
{
    heap_own();
    fake_os_set_memory_limit(1);
    CHECK(hak_set_limit(0, 0) == 0);
    listen(count_call);
    free_list(take(NULL, 3000, 40 * MIB));
    CHECK(fake_os_memory_limit_reads() == 0);
    CHECK(calls == 0);
}

/* ---- The hard limit. */

/* At the limit by blocks of each kind: all else stays whole, and what is given back is had again. */
static void hard_limit_refuses(void)
{
    static const size_t sizes[] = {24, 700, 4096, 20000, 32768, 40000, 300000, 3000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct node *held = take(NULL, 1000, 2 * MIB);
        held = take(held, 200000, 2 * MIB);
        CHECK(hak_set_limit(0, limit_held() + 12 * MIB) == 0);
        struct node *list = exhaust(NULL, sizes[i]);
        CHECK(list != NULL);
        errno = 0;
        CHECK(hak_malloc(13 * MIB) == NULL && errno == ENOMEM);
        CHECK(hak_calloc(30, MIB) == NULL);
        CHECK(hak_aligned_alloc(1 << 20, 12 * MIB) == NULL);
        check_list(list);
        check_list(held);
        struct node *next = list->next;
        hak_free(list);
        list = hak_malloc(sizes[i]);
        CHECK(list != NULL);
        free_list(add(next, list, sizes[i]));
        /* By blocks of another kind. */
        list = take(NULL, sizes[(i + 3) % 8], 8 * MIB);
        free_list(list);
        check_list(held);
        free_list(held);
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
    struct node *list = take(NULL, 17000, 4 * MIB);
    struct memory_stats stats;
    list = exhaust(list, 17000);
    stats_read(&stats);
    CHECK(stats.bigcache_bytes == 0);
    CHECK(stats.cached_bytes < 17000);
    CHECK(stats.dirty_bytes < size_classes[size_class_of(17000)].units * UNIT_SIZE);
    free_list(list);
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
    fragments_of_written_memory();
    CHECK(hak_set_limit(0, limit_held()) == 0);
    void *block = hak_malloc(6 * MIB);
    CHECK(block != NULL && dirty_bytes() == 0);
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
    fragments_of_written_memory();
    /* Too little for a second copy, enough for the difference. */
    CHECK(hak_set_limit(0, limit_held() - 4 * MIB) == 0);
    unsigned char *grown = hak_realloc(block, 7 * MIB);
    CHECK(grown != NULL && dirty_bytes() == 0);
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
        struct node *list = take(NULL, CLASS_BYTES, 256 * KIB);
        CHECK(hak_set_limit(0, limit_held() + more * UNIT_SIZE) == 0);
        list = exhaust(list, CLASS_BYTES);
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
            list = add(list, again, CLASS_BYTES);
            CHECK(hak_malloc(CLASS_BYTES) == NULL);
        }
        free_list(list);
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

static void soft_comes_before_hard(void)
{
    heap_own();
    CHECK(hak_set_limit(8 * MIB, 12 * MIB) == 0);
    listen(count_call);
    struct node *list = exhaust(NULL, 3000);
    CHECK(calls == 1);
    free_list(list);
    CHECK(hak_malloc(MIB) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(soft_limit_empties_the_bigcache),
        UNIT_TEST(soft_limit_purges),
        UNIT_TEST(soft_limit_empties_idle_heaps),
        UNIT_TEST(gives_back_within_the_request),
        UNIT_TEST(requested_bytes_stay_exact),
        UNIT_TEST(called_when_nothing_else_helps),
        UNIT_TEST(called_once_a_crossing),
        UNIT_TEST(callback_may_allocate_and_free),
        UNIT_TEST(callback_may_come_in_any_call),
        UNIT_TEST(callback_may_change_the_limit),
        UNIT_TEST(callback_may_go),
        UNIT_TEST(illegal_limits_change_nothing),
        UNIT_TEST(control_group_limits_softly),
        UNIT_TEST(control_group_may_be_small),
        UNIT_TEST(control_group_is_not_asked_when_limits_are_set),
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
        UNIT_TEST(soft_comes_before_hard),
    };
    return cmocka_run_group_tests_name("relief", tests, NULL, NULL);
}
