/* heap/magazine.h: order, flushing, the audit. */
#include "unit.h"

#include "arena/meta.h"
#include "fake_os.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "magazines.h"

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
