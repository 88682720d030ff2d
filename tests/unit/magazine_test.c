/* heap/magazine.h: order, capacity, flushing, the audit. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "arena/meta.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heaps.h"

enum { CLASS = 4, SIZE = 64, BLOCKS = 2000 };

static char *blocks[BLOCKS];

static void alloc_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hak_malloc(SIZE);
        CHECK(blocks[i] != NULL);
    }
}

static void free_all(size_t count)
{
    for (size_t i = 0; i < count; i++)
        hak_free(blocks[i]);
}

/* An empty magazine of a capacity that the test chooses. */
static struct heap *heap_with_capacity(size_t capacity)
{
    struct heap *heap = heap_own();
    magazine_widen(heap, CLASS, capacity);
    magazine_flush(heap, CLASS, SIZE_MAX);
    CHECK(magazine_count(heap, CLASS) == 0);
    CHECK(heap->shelf[CLASS].capacity >= capacity);
    return heap;
}

static void last_in_is_first_out(void)
{
    heap_with_capacity(100);
    alloc_all(50);
    free_all(50);
    for (int i = 49; i >= 0; i--)
        CHECK(hak_malloc(SIZE) == blocks[i]);
}

/* Is it full with this many blocks, as free sees it, and not before? Leaves it empty. */
static void check_end(struct heap *heap, size_t capacity)
{
    void **slots = heap->shelf[CLASS].slots;
    CHECK(heap->shelf[CLASS].capacity == capacity && slots[0] == NULL);
    for (size_t i = 0; i <= capacity; i++) {
        void *block = NULL;
        CHECK(shelf_take(heap, CLASS, &block, 1) == 1);
        blocks[i] = block;
    }
    for (size_t i = 0; i < capacity; i++) {
        CHECK(!magazine_is_full(heap, CLASS));
        CHECK(magazine_keep(heap, CLASS, blocks[i]));
    }
    CHECK(magazine_is_full(heap, CLASS) && heap->view.top[CLASS][1] == SLOT_FULL);
    CHECK(!magazine_keep(heap, CLASS, blocks[capacity]) && magazine_count(heap, CLASS) == capacity);
    CHECK(slots[capacity + 1] == SLOT_FULL);
    magazine_flush(heap, CLASS, SIZE_MAX);
    shelf_put(heap, blocks[capacity]);
}

/* However wide it has become, and after a wider one has been where it is now. */
static void the_end_is_seen_at_each_capacity(void)
{
    struct heap *heap = heap_own();
    const size_t most = 256;
    for (size_t capacity = 32; capacity <= most; capacity *= 2) {
        magazine_widen(heap, CLASS, capacity);
        magazine_flush(heap, CLASS, SIZE_MAX);
        check_end(heap, capacity);
    }
    for (size_t capacity = most / 2; capacity >= 2; capacity /= 2) {
        magazine_trim(heap, CLASS);
        check_end(heap, capacity);
    }
}

/* Of a class that has none yet, and of one that the door holds: both hot functions come to the door. */
static void a_held_magazine_is_empty_and_full(void)
{
    struct heap *heap = heap_with_capacity(100);
    CHECK(magazine_is_full(heap, CLASS + 1) && *heap->view.top[CLASS + 1] == NULL);
    alloc_all(3);
    free_all(3);
    void **top = magazine_hold(heap, CLASS);
    CHECK(magazine_is_full(heap, CLASS) && *heap->view.top[CLASS] == NULL);
    CHECK(magazine_count(heap, CLASS) == 0);
    magazine_open(heap, CLASS, top);
    CHECK(!magazine_is_full(heap, CLASS) && magazine_is_top(heap, CLASS, blocks[2]));
}

static void refills_come_ascending(void)
{
    heap_own();
    alloc_all(BLOCKS / 2);
    for (int i = 1; i < BLOCKS / 2; i++)
        CHECK(blocks[i] > blocks[i - 1] || arena_span(blocks[i]) != arena_span(blocks[i - 1]));
}

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

static void oldest_are_flushed_first(void)
{
    struct heap *heap = heap_with_capacity(40);
    alloc_all(40);
    magazine_flush(heap, CLASS, SIZE_MAX);
    free_all(40);
    CHECK(magazine_count(heap, CLASS) == 40);
    magazine_flush(heap, CLASS, 15);
    CHECK(magazine_count(heap, CLASS) == 25);
    for (int i = 39; i >= 15; i--)
        CHECK(magazine_pop(heap, CLASS) == blocks[i]);
    CHECK(magazine_count(heap, CLASS) == 0);
    magazine_flush(heap, CLASS, 1);
}

static void full_magazine_gives_back_half(void)
{
    struct heap *heap = heap_with_capacity(32);
    alloc_all(200);
    magazine_flush(heap, CLASS, SIZE_MAX);
    unsigned capacity = heap->shelf[CLASS].capacity;
    CHECK(capacity < 200);
    heap->shelf[CLASS].last_event = 0; /* as if the door had not been here: no growth */
    for (unsigned i = 0; i < capacity; i++)
        hak_free(blocks[i]);
    CHECK(magazine_count(heap, CLASS) == capacity);
    hak_free(blocks[capacity]);
    CHECK(heap->shelf[CLASS].capacity == capacity);
    CHECK(magazine_count(heap, CLASS) == capacity - capacity / 2 + 1);
    CHECK(hak_malloc(SIZE) == blocks[capacity]);
    CHECK(hak_malloc(SIZE) == blocks[capacity - 1]);
}

static void keeps_only_what_fits(void)
{
    struct heap *heap = heap_with_capacity(16);
    unsigned capacity = heap->shelf[CLASS].capacity;
    alloc_all(capacity + 1);
    magazine_flush(heap, CLASS, SIZE_MAX);
    for (unsigned i = 0; i < capacity; i++)
        CHECK(magazine_keep(heap, CLASS, blocks[i]));
    CHECK(!magazine_keep(heap, CLASS, blocks[capacity]));
    CHECK(magazine_is_top(heap, CLASS, blocks[capacity - 1]));
    CHECK(!magazine_is_top(heap, CLASS, blocks[0]));
    CHECK(!magazine_is_top(heap, CLASS, NULL));
    CHECK(!magazine_keep(heap, CLASS + 1, hak_malloc(SIZE))); /* never used: it has no slots */
}

static void holes_are_closed(void)
{
    struct heap *heap = heap_with_capacity(32);
    alloc_all(30);
    magazine_flush(heap, CLASS, SIZE_MAX);
    free_all(30);
    for (int i = 0; i < 29; i++)
        if (i % 3 != 0)
            heap->shelf[CLASS].slots[1 + i] = NULL;
    magazine_compact(heap);
    CHECK(magazine_count(heap, CLASS) == 11);
    CHECK(hak_malloc(SIZE) == blocks[29]);
    for (int i = 27; i >= 0; i -= 3)
        CHECK(hak_malloc(SIZE) == blocks[i]);
}

static void audit_finds_nothing_wrong(void)
{
    struct heap *heap = heap_with_capacity(64);
    alloc_all(60);
    free_all(60);
    size_t count = magazine_count(heap, CLASS);
    uint64_t out = heap->shelf[CLASS].blocks_out;
    size_t room = shelf_room(heap, CLASS);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        magazine_audit(heap, class);
    CHECK(magazine_count(heap, CLASS) == count);
    CHECK(heap->shelf[CLASS].blocks_out == out);
    CHECK(shelf_room(heap, CLASS) == room);
    for (int i = 59; i >= 0; i--)
        CHECK(hak_malloc(SIZE) == blocks[i]);
}

enum fault { TWICE, INSIDE };

static void audit_a_fault(uintptr_t fault)
{
    struct heap *heap = heap_with_capacity(64);
    alloc_all(10);
    free_all(9);
    hak_free(fault == TWICE ? blocks[3] : blocks[9] + 8);
    magazine_audit(heap, CLASS);
}

static void flush_a_fault(uintptr_t fault)
{
    struct heap *heap = heap_with_capacity(64);
    alloc_all(10);
    free_all(9);
    hak_free(fault == TWICE ? blocks[3] : blocks[9] + 8);
    magazine_flush_all(heap);
}

static void free_twice_at_once(uintptr_t unused)
{
    (void)unused;
    heap_with_capacity(64);
    alloc_all(1);
    hak_free(blocks[0]);
    hak_free(blocks[0]);
}

static void faults_end_the_process(void)
{
    static const char twice[] = "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)";
    static const char inside[] = "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)";
    CHECK_DIES(audit_a_fault, TWICE, twice);
    CHECK_DIES(audit_a_fault, INSIDE, inside);
    CHECK_DIES(flush_a_fault, TWICE, twice);
    CHECK_DIES(flush_a_fault, INSIDE, inside);
    CHECK_DIES(free_twice_at_once, 0, twice);
}

static void works_without_memory_for_slots(void)
{
    struct heap *heap = heap_own();
    CHECK(shelf_prepare(heap, CLASS + 1));
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    while (meta_alloc(64) != NULL)
        ;
    char *first = hak_malloc(SIZE + 16);
    char *second = hak_malloc(SIZE + 16);
    CHECK(first != NULL && second > first);
    CHECK(heap->shelf[CLASS + 1].slots == NULL);
    hak_free(first);
    CHECK(hak_malloc(SIZE + 16) == first);
    fake_os_obey();
    hak_free(first);
    hak_free(second);
    CHECK(hak_malloc(SIZE + 16) != NULL);
    CHECK(heap->shelf[CLASS + 1].slots != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(last_in_is_first_out),
        UNIT_TEST(the_end_is_seen_at_each_capacity),
        UNIT_TEST(a_held_magazine_is_empty_and_full),
        UNIT_TEST(refills_come_ascending),
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
        UNIT_TEST(oldest_are_flushed_first),
        UNIT_TEST(full_magazine_gives_back_half),
        UNIT_TEST(keeps_only_what_fits),
        UNIT_TEST(holes_are_closed),
        UNIT_TEST(audit_finds_nothing_wrong),
        UNIT_TEST(faults_end_the_process),
        UNIT_TEST(works_without_memory_for_slots),
    };
    return cmocka_run_group_tests_name("magazine", tests, NULL, NULL);
}
