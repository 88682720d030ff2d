/* heap/magazine.h: how many blocks a magazine may hold. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "config/policy.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "magazines.h"

static size_t capacity_bytes(const struct heap *heap)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        bytes += (size_t)heap->shelf[class].capacity * size_classes[class].size;
    return bytes;
}

static void capacity_grows_with_use(void)
{
    struct heap *heap = heap_own();
    alloc_all(1);
    unsigned first = heap->shelf[CLASS].capacity;
    CHECK(first <= 16);
    for (int round = 0; round < 100; round++) {
        alloc_all(BLOCKS);
        free_all(BLOCKS);
        CHECK(heap->shelf[CLASS].capacity * SIZE <= policy.magazine_bytes[CLASS]);
        CHECK(heap->capacity_bytes == capacity_bytes(heap));
    }
    CHECK(heap->shelf[CLASS].capacity == 512);
}

static void capacity_keeps_to_the_policy(void)
{
    CHECK(policy_set_mode("minimal"));
    struct heap *heap = heap_own();
    for (int round = 0; round < 100; round++) {
        alloc_all(BLOCKS);
        free_all(BLOCKS);
    }
    CHECK(heap->shelf[CLASS].capacity == policy.magazine_bytes[CLASS] / SIZE);
    magazine_widen(heap, CLASS, SIZE_MAX);
    CHECK(heap->shelf[CLASS].capacity == policy.magazine_bytes[CLASS] / SIZE);
}

static atomic_bool limit_rests;

/* As hak_mode_set and the learner do, from any thread. */
static void *change_limit(void *unused)
{
    size_t before = load_relaxed(&policy.magazine_bytes[CLASS]);
    while (!limit_rests)
        for (size_t slots = 512; slots >= 16; slots /= 2)
            store_relaxed(&policy.magazine_bytes[CLASS], slots * SIZE);
    store_relaxed(&policy.magazine_bytes[CLASS], before);
    return unused;
}

/* What does not fit any more is given back first. */
static void the_limit_may_come_down_while_it_is_read(void)
{
    enum { ROUNDS = 500 };
    struct heap *heap = heap_own();
    struct shelf *shelf = &heap->shelf[CLASS];
    pthread_t thread;
    limit_rests = false;
    CHECK(pthread_create(&thread, NULL, change_limit, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        alloc_all(BLOCKS);
        for (size_t i = 0; i < BLOCKS; i++) {
            hak_free(blocks[i]);
            CHECK((size_t)(heap->view.top[CLASS] - shelf->slots) <= shelf->capacity);
        }
        CHECK(shelf->slots[shelf->capacity + 1] == SLOT_FULL);
    }
    limit_rests = true;
    CHECK(pthread_join(thread, NULL) == 0);
}

static void batches_follow_the_policy(void)
{
    static const struct {
        size_t eighths;
        size_t blocks;
    } cases[] = {{1, 2}, {4, 8}, {6, 12}, {8, 16}};
    struct heap *heap = heap_own();
    hak_free(hak_malloc(SIZE));
    CHECK(heap->shelf[CLASS].capacity == 16);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        magazine_flush(heap, CLASS, SIZE_MAX);
        policy.batch_eighths[CLASS] = cases[i].eighths;
        heap->shelf[CLASS].streak = 0;
        void *block = magazine_pop(heap, CLASS);
        CHECK(magazine_count(heap, CLASS) == cases[i].blocks - 1);
        hak_free(block);
    }
}

static void capacity_comes_down_with_the_policy(void)
{
    struct heap *heap = heap_own();
    for (int round = 0; round < 20; round++) {
        alloc_all(BLOCKS);
        free_all(BLOCKS);
    }
    CHECK(heap->shelf[CLASS].capacity == 512);
    CHECK(policy_set_mode("minimal"));
    alloc_all(BLOCKS);
    free_all(BLOCKS);
    CHECK(heap->shelf[CLASS].capacity == policy.magazine_bytes[CLASS] / SIZE);
    CHECK(heap->capacity_bytes == capacity_bytes(heap));
}

/* Makes all fixed classes' magazines as wide as they become, however often refills and flushes alternate. Returns the most units that the
 * heap has had; in *first how many bytes the magazines hold as they are made. */
static size_t widen_all(struct heap *heap, size_t *first)
{
    size_t units = 0;
    *first = 0;
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        hak_free(hak_malloc(size_classes[class].size));
        *first += heap->shelf[class].capacity * size_classes[class].size;
    }
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        for (int round = 0; round < 20; round++) {
            for (size_t i = 0; i < 100; i++)
                blocks[i] = hak_malloc(size_classes[class].size);
            units = max_size(units, heap->units);
            free_all(100);
        }
    }
    return units;
}

static void magazines_keep_to_their_share_of_the_heap(void)
{
    struct heap *heap = heap_own();
    size_t first;
    size_t units = widen_all(heap, &first);
    CHECK(heap->capacity_bytes <= max_size(first, max_size(units * UNIT_SIZE / 6, 256 << 10)));
    CHECK(heap->capacity_bytes < policy.thread_cache_bytes);
}

static void of_a_small_heap_they_may_hold_an_eighth_of_the_budget(void)
{
    policy.thread_cache_bytes = 16 * MIB;
    struct heap *heap = heap_own();
    size_t first;
    size_t units = widen_all(heap, &first);
    CHECK(units * UNIT_SIZE / 6 < 2 * MIB);
    CHECK(heap->capacity_bytes > MIB && heap->capacity_bytes <= 2 * MIB);
}

static size_t narrow_all(struct heap *heap)
{
    size_t narrowed = 0;
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        for (; magazine_is_too_wide(heap, class); narrowed++)
            magazine_trim(heap, class);
    }
    return narrowed;
}

static void they_become_narrow_when_the_budget_does(void)
{
    policy.thread_cache_bytes = 16 * MIB;
    struct heap *heap = heap_own();
    size_t first;
    (void)widen_all(heap, &first);
    CHECK(narrow_all(heap) == 0);
    policy.thread_cache_bytes = MIB;
    CHECK(narrow_all(heap) > 0);
    CHECK(heap->capacity_bytes <= max_size(first, MIB + MIB / 4) && heap->capacity_bytes == capacity_bytes(heap));
    policy.thread_cache_bytes = 64 << 10;
    (void)narrow_all(heap);
    CHECK(heap->capacity_bytes <= first); /* and no narrower than they are made */
}

static void thread_keeps_its_budget(void)
{
    policy.thread_cache_bytes = 300 << 10;
    struct heap *heap = heap_own();
    size_t first = 0; /* bytes of all magazines as they are made */
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        hak_free(hak_malloc(size_classes[class].size));
        first += heap->shelf[class].capacity * size_classes[class].size;
    }
    CHECK(heap->capacity_bytes == first);
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        for (int round = 0; round < 20; round++) {
            for (size_t i = 0; i < 100; i++)
                blocks[i] = hak_malloc(size_classes[class].size);
            free_all(100);
        }
        CHECK(heap->capacity_bytes == capacity_bytes(heap));
        CHECK(heap->capacity_bytes <= max_size(first, policy.thread_cache_bytes));
    }
}

static void trim_empties_and_narrows(void)
{
    struct heap *heap = heap_with_capacity(64);
    unsigned capacity = heap->shelf[CLASS].capacity;
    alloc_all(60);
    free_all(60);
    CHECK(magazine_count(heap, CLASS) >= 60);
    for (unsigned wanted = capacity / 2; wanted >= 2; wanted /= 2) {
        magazine_trim(heap, CLASS);
        CHECK(magazine_count(heap, CLASS) == 0);
        CHECK(heap->shelf[CLASS].capacity == wanted);
    }
    magazine_trim(heap, CLASS);
    CHECK(heap->shelf[CLASS].capacity == 2);
    CHECK(heap->shelf[CLASS].blocks_out == 0);
    CHECK(heap->capacity_bytes == capacity_bytes(heap));
    alloc_all(100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(capacity_grows_with_use),
        UNIT_TEST(capacity_keeps_to_the_policy),
        UNIT_TEST(capacity_comes_down_with_the_policy),
        UNIT_TEST(the_limit_may_come_down_while_it_is_read),
        UNIT_TEST(batches_follow_the_policy),
        UNIT_TEST(magazines_keep_to_their_share_of_the_heap),
        UNIT_TEST(of_a_small_heap_they_may_hold_an_eighth_of_the_budget),
        UNIT_TEST(they_become_narrow_when_the_budget_does),
        UNIT_TEST(thread_keeps_its_budget),
        UNIT_TEST(trim_empties_and_narrows),
    };
    return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
