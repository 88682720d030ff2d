/* heap/classes.h: the table with classes made at run time; what an id means changes only when nothing of it is left. */
#include "unit.h"

#include <string.h>
#include <time.h>

#include "api/stats.h"
#include "config/policy.h"
#include "heap/classes.h"
#include "heap/events.h"
#include "heap/heartbeat.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "random.h"
#include "scale.h"
#include "worker.h"

enum { MADE = SIZE_CLASSES - SIZE_CLASSES_FIXED };

static bool is_defined(unsigned id)
{
    return (classes_defined >> id & 1) != 0;
}

/* Gives back what the calling thread has cached of closed classes, and their ids to others. */
static void tidy(void)
{
    heartbeat(heap_own());
    for (int i = 0; i < MADE; i++)
        classes_reclaim_one();
}

static unsigned open_class(size_t size)
{
    heap_own();
    unsigned id = classes_open(size);
    CHECK(id >= SIZE_CLASSES_FIXED && id < SIZE_CLASSES);
    CHECK(size_classes[id].size == size && is_defined(id));
    return id;
}

/* Every request is of the smallest class that is open. */
static void check_table(const size_t *sizes, size_t count)
{
    for (size_t size = 1; size <= SMALL_MAX; size++) {
        size_t least = size_classes[size_class_fixed(size)].size;
        for (size_t i = 0; i < count; i++)
            if (sizes[i] >= size && sizes[i] < least)
                least = sizes[i];
        CHECK(size_classes[size_class_of(size)].size == least);
    }
}

static void fixed_class_by_arithmetic(void)
{
    heap_own();
    for (size_t size = 0; size <= SMALL_MAX; size++)
        CHECK(size_class_fixed(size) == size_class_of(size));
}

static void every_size_between_makes_a_class(void)
{
    heap_own();
    for (size_t size = 0; size <= SMALL_MAX + 16; size++) {
        bool fixed = size <= SMALL_MAX && size_classes[size_class_fixed(size)].size == size;
        bool may = size % 16 == 0 && size > 128 && size < SMALL_MAX && !fixed;
        CHECK(size_class_may_be_made(size) == may);
        if (!may)
            continue;
        struct size_class class = size_class_geometry(size);
        size_t bytes = class.units * UNIT_SIZE;
        CHECK(class.blocks == bytes / size && class.blocks >= 4 && class.units <= SLAB_UNITS_MAX);
        for (size_t block = 0; block < class.blocks; block++) {
            CHECK(block * size * class.reciprocal >> 32 == block);
            CHECK((block * size + size - 1) * class.reciprocal >> 32 == block);
        }
    }
}

static void the_table_follows(void)
{
    uint64_t seed = 5;
    size_t sizes[MADE];
    unsigned ids[MADE];
    size_t count = 0;
    heap_own();
    for (size_t i = 0; i < scaled_work(400); i++) {
        size_t at = random_below(&seed, MADE);
        if (at < count) {
            classes_close(ids[at]);
            sizes[at] = sizes[--count];
            ids[at] = ids[count];
        } else {
            /* Often several between the same fixed classes. */
            size_t size = 16 * (9 + random_below(&seed, random_below(&seed, 2) == 0 ? 60 : 2039));
            unsigned id = classes_open(size);
            if (id == SIZE_CLASSES)
                continue;
            sizes[count] = size;
            ids[count++] = id;
        }
        check_table(sizes, count);
    }
    while (count > 0)
        classes_close(ids[--count]);
    check_table(NULL, 0);
}

static void opened_twice_or_wrong_is_refused(void)
{
    CHECK(classes_open(1040) == SIZE_CLASSES); /* the allocator has not started */
    open_class(1040);
    CHECK(classes_open(1040) == SIZE_CLASSES);
    CHECK(classes_open(1041) == SIZE_CLASSES);
    CHECK(classes_open(1280) == SIZE_CLASSES);
    CHECK(classes_open(96) == SIZE_CLASSES);
    CHECK(classes_open(0) == SIZE_CLASSES);
    CHECK(classes_open(SMALL_MAX + 16) == SIZE_CLASSES);
    for (size_t i = 1; i < MADE; i++)
        open_class(2048 + 16 * i);
    CHECK(classes_open(4112) == SIZE_CLASSES);
}

static void blocks_are_of_the_class(void)
{
    open_class(1040);
    char *p = hak_malloc(1030);
    CHECK(hak_malloc_usable_size(p) == 1040 && (uintptr_t)p % 16 == 0);
    char *same = hak_realloc(p, 1040);
    CHECK(same == p);
    same[1039] = 7;
    char *moved = hak_realloc(same, 1041);
    CHECK(moved != p && moved[1039] == 7);
    CHECK(hak_malloc_usable_size(moved) > 1041);
    CHECK(hak_malloc_usable_size(hak_malloc(1041)) == 1280);
    CHECK(hak_malloc_usable_size(hak_malloc(1024)) == 1024);
    hak_free(moved);
}

/* Before the class has slabs of its own, it takes what the fixed one has. */
static void holes_of_the_fixed_class_come_first(void)
{
    enum { COUNT = 64 };
    void *before[COUNT];
    void *after[COUNT];
    struct heap *heap = heap_own();
    for (int i = 0; i < COUNT; i++)
        before[i] = hak_malloc(1040);
    unsigned fixed = size_class_of(1040);
    size_t slabs = heap->counts->slabs[fixed];
    size_t room = slabs * size_classes[fixed].blocks - heap->shelf[fixed].blocks_out;
    unsigned id = open_class(1040);
    CHECK(room > 1 && room < COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        after[i] = hak_malloc(1040);
        CHECK(hak_malloc_usable_size(after[i]) == (i < room ? 1280 : 1040));
    }
    CHECK(heap->counts->slabs[fixed] == slabs && heap->counts->slabs[id] > 0);
    for (int i = 0; i < COUNT; i++) {
        hak_free(before[i]);
        hak_free(after[i]);
    }
    hak_malloc_trim(0);
    CHECK(heap->counts->slabs[fixed] == 0 && heap->counts->slabs[id] == 0);
}

/* A magazine with blocks of another class keeps its id from becoming a larger one's. */
static void ids_wait_for_what_they_borrow(void)
{
    struct heap *heap = heap_own();
    void *before = hak_malloc(144);
    unsigned id = open_class(144);
    void *p = hak_malloc(144);
    CHECK(hak_malloc_usable_size(p) == 160 && heap->counts->slabs[id] == 0 && magazine_count(heap, id) > 0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_blocks == 2); /* what is borrowed is cached, not live */
    classes_close(id);
    classes_reclaim_one();
    CHECK(is_defined(id));
    tidy();
    CHECK(!is_defined(id) && heap->shelf[id].borrows == 0);
    hak_free(p);
    hak_free(before);
    hak_malloc_trim(0);
    CHECK(heap->counts->slabs[size_class_of(144)] == 0);
}

static void alignment_is_kept(void)
{
    heap_own();
    for (size_t size = 1040; size < 1280; size += 16)
        open_class(size);
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2)
        for (size_t size = 1; size < 3000; size += 7) {
            char *p = hak_aligned_alloc(alignment, size);
            CHECK((uintptr_t)p % alignment == 0 && hak_malloc_usable_size(p) >= size);
            memset(p, 1, size);
            hak_free(p);
        }
    char *p = hak_memalign(16, 1100);
    CHECK(hak_malloc_usable_size(p) == 1104);
    hak_free(p);
}

static void a_closed_class_drains(void)
{
    unsigned id = open_class(1040);
    void *block[100];
    for (int i = 0; i < 100; i++)
        block[i] = hak_malloc(1040);
    classes_close(id);
    CHECK(size_class_of(1040) == size_class_fixed(1040));
    tidy();
    CHECK(is_defined(id) && classes_draining == (uint64_t)1 << id);
    for (int i = 0; i < 100; i++) {
        CHECK(hak_malloc_usable_size(block[i]) == 1040);
        hak_free(block[i]);
        if (i == 98) {
            tidy();
            CHECK(is_defined(id));
        }
    }
    tidy();
    CHECK(!is_defined(id) && classes_draining == 0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_bytes == 0);
    CHECK(open_class(5008) == id);
}

static void a_closed_class_opens_again(void)
{
    unsigned id = open_class(1040);
    void *p = hak_malloc(1040);
    classes_close(id);
    CHECK(hak_malloc_usable_size(hak_malloc(1040)) == 1280);
    CHECK(open_class(1040) == id);
    CHECK(classes_draining == 0);
    for (int i = 0; i < 100; i++)
        CHECK(hak_malloc(1040) != NULL);
    CHECK(hak_malloc_usable_size(hak_malloc(1040)) == 1040);
    hak_free(p);
}

/* Wherever the last block is. */
static void ids_wait_for_the_last_block(void)
{
    struct view *word;
    unsigned id = open_class(1040);
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    void *theirs = magazine_pop(other, id);
    magazine_flush(other, id, SIZE_MAX);
    classes_close(id);
    tidy();
    CHECK(is_defined(id)); /* live */
    hak_free(theirs);
    classes_reclaim_one();
    CHECK(is_defined(id)); /* in an outbox */
    mail_post_all(own);
    classes_reclaim_one();
    CHECK(is_defined(id)); /* in a letter */
    mail_collect(other, true);
    classes_reclaim_one();
    CHECK(is_defined(id)); /* in a magazine */
    magazine_flush(other, id, SIZE_MAX);
    classes_reclaim_one();
    CHECK(is_defined(id)); /* in the current slab */
    classes_leave_closed(other);
    classes_reclaim_one();
    CHECK(!is_defined(id));
}

static void no_slab_of_what_is_not_defined(void)
{
    struct heap *heap = heap_own();
    unsigned id = open_class(1040);
    classes_close(id);
    classes_reclaim_one();
    CHECK(!is_defined(id));
    CHECK(magazine_pop(heap, id) == NULL);
    CHECK(!shelf_prepare(heap, id));
    CHECK(heap->counts->slabs[id] == 0);
}

static size_t made_for(const struct heap *heap, unsigned class)
{
    return class < SIZE_CLASSES_FIXED ? size_class_bytes(class) : heap->made_for[class - SIZE_CLASSES_FIXED];
}

/* What a magazine may hold is a matter of bytes. */
static void magazines_follow_the_size(void)
{
    enum { BLOCKS = 4000 };
    static void *blocks[BLOCKS];
    struct heap *heap = heap_own();
    unsigned id = open_class(144);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = hak_malloc(144);
        for (int i = 0; i < BLOCKS; i++)
            hak_free(blocks[i]);
    }
    CHECK(heap->shelf[id].capacity > 64);
    classes_close(id);
    tidy();
    CHECK(open_class(16400) == id);
    hak_free(hak_malloc(16400));
    CHECK(heap->shelf[id].capacity * 16400 <= policy.magazine_bytes[id]);
    size_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        if (heap->shelf[class].slots != NULL)
            bytes += (size_t)heap->shelf[class].capacity * made_for(heap, class);
    CHECK(bytes == heap->capacity_bytes);
}

/* A thread that has read the table before an id became a smaller class: the table shows the old entry until the block is
 * there. */
static unsigned stale_id;
static size_t stale_size;
static int refills;

static void show_stale_entry(unsigned id)
{
    store_relaxed(&size_to_class[stale_size / 8], (uint8_t)id);
}

static void table_is_read_again(const struct heap *heap, size_t size, unsigned class, size_t blocks)
{
    (void)heap;
    CHECK(size == stale_size && (refills > 0 || class == stale_id));
    CHECK(refills > 0 || blocks > 0 || !is_defined(stale_id));
    refills++;
    show_stale_entry(size_class_fixed(stale_size));
}

static void a_smaller_block_goes_back(void)
{
    struct heap *heap = heap_own();
    stale_id = open_class(1040);
    stale_size = 2064;
    show_stale_entry(stale_id);
    heap_events.refilled = table_is_read_again;
    void *p = hak_malloc(stale_size);
    CHECK(refills == 2 && hak_malloc_usable_size(p) == 2560);
    CHECK(heap->shelf[stale_id].blocks_out == magazine_count(heap, stale_id));
    hak_free(p);
}

static void show_right_entry(void *unused)
{
    (void)unused;
    struct timespec soon = {.tv_nsec = 20000000};
    nanosleep(&soon, NULL);
    show_stale_entry(size_class_fixed(stale_size));
}

/* The orphan heap has no hook: another thread brings the table up to date. */
static void a_smaller_block_goes_back_to_the_orphan(void)
{
    struct worker worker;
    stale_id = open_class(1040);
    stale_size = 2064;
    worker_start(&worker);
    show_stale_entry(stale_id);
    worker_begin(&worker, show_right_entry, NULL);
    void *p = orphan_malloc(stale_size);
    CHECK(hak_malloc_usable_size(p) == 2560);
    CHECK(heap_of(p)->shelf[stale_id].blocks_out == 0);
    worker_wait(&worker);
    worker_stop(&worker);
}

static void an_id_that_is_no_more_is_read_again(void)
{
    stale_id = open_class(5008);
    stale_size = 2064;
    classes_close(stale_id);
    tidy();
    CHECK(!is_defined(stale_id));
    show_stale_entry(stale_id);
    heap_events.refilled = table_is_read_again;
    void *p = hak_malloc(stale_size);
    CHECK(refills == 2 && hak_malloc_usable_size(p) == 2560);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(fixed_class_by_arithmetic),
        UNIT_TEST(every_size_between_makes_a_class),
        UNIT_TEST(the_table_follows),
        UNIT_TEST(opened_twice_or_wrong_is_refused),
        UNIT_TEST(blocks_are_of_the_class),
        UNIT_TEST(holes_of_the_fixed_class_come_first),
        UNIT_TEST(ids_wait_for_what_they_borrow),
        UNIT_TEST(alignment_is_kept),
        UNIT_TEST(a_closed_class_drains),
        UNIT_TEST(a_closed_class_opens_again),
        UNIT_TEST(ids_wait_for_the_last_block),
        UNIT_TEST(no_slab_of_what_is_not_defined),
        UNIT_TEST(magazines_follow_the_size),
        UNIT_TEST(a_smaller_block_goes_back),
        UNIT_TEST(a_smaller_block_goes_back_to_the_orphan),
        UNIT_TEST(an_id_that_is_no_more_is_read_again),
    };
    return cmocka_run_group_tests_name("classes", tests, NULL, NULL);
}
