/* heap/shelf.h: slabs come and go, change owners, and audit what comes back. */
#include "unit.h"

#include "api/stats.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heaps.h"
#include "random.h"

enum { BLOCKS_MOST = 40000 };

static void *slots[BLOCKS_MOST + 1];

static size_t baseline(struct heap *heap)
{
    hak_malloc_trim(0);
    stock_trim(heap);
    return span_used_bytes();
}

/* Fills slots[count] down to slots[1]. */
static void take(struct heap *heap, unsigned class, unsigned count)
{
    CHECK(count <= BLOCKS_MOST);
    while (count > 0) {
        unsigned got = shelf_take(heap, class, slots + count, count);
        CHECK(got > 0 && got <= count);
        count -= got;
    }
}

static void blocks_come_from_as_many_slabs_as_needed(void)
{
    struct heap *heap = heap_own();
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        uint64_t out = heap->shelf[class].blocks_out;
        unsigned count = size_classes[class].blocks * 3 / 2;
        take(heap, class, count);
        CHECK(heap->shelf[class].blocks_out == out + count);
        for (unsigned i = count; i > 0; i--) {
            CHECK(arena_tag(slots[i]) == ((uintptr_t)heap | class));
            CHECK(i == count || arena_span(slots[i]) != arena_span(slots[i + 1]) || slots[i] > slots[i + 1]);
        }
    }
}

/* What size_class_aligned relies on: in heaps that take single runs, and in those that take groups of units. */
static void blocks_are_aligned_as_their_size_is(void)
{
    enum { SLABS = 8, UNITS_OF_LARGE_HEAP = 1 << 16 };
    struct heap *heap = heap_own();
    for (int large = 0; large < 2; large++) {
        heap->units = large != 0 ? UNITS_OF_LARGE_HEAP : 0;
        for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
            size_t size = size_classes[class].size;
            size_t align = min_size(size & (0 - size), SLAB_ALIGN_MOST);
            for (int slab = 0; slab < SLABS; slab++) {
                uint32_t clean;
                unsigned odd = size_classes[class].units + (unsigned)units_per_page(); /* from where the slab will come from, too */
                CHECK(stock_take(heap, odd, 1, &clean) != NULL);
                take(heap, class, size_classes[class].blocks);
                for (unsigned i = size_classes[class].blocks; i > 0; i--)
                    CHECK((uintptr_t)slots[i] % align == 0);
            }
        }
    }
}

static void empty_slabs_go_back(void)
{
    struct heap *heap = heap_own();
    uint64_t seed = 10;
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        size_t before = baseline(heap);
        unsigned count = size_classes[class].blocks * 7 / 2;
        take(heap, class, count);
        while (count > 0) {
            size_t i = 1 + random_below(&seed, count);
            shelf_put(heap, slots[i]);
            slots[i] = slots[count--];
        }
        CHECK(heap->shelf[class].blocks_out == 0);
        shelf_release_empty(heap);
        stock_trim(heap);
        CHECK(span_used_bytes() == before);
    }
}

static void fullest_slab_serves_first(void)
{
    struct heap *heap = heap_own();
    const unsigned class = 10;
    unsigned blocks = size_classes[class].blocks;
    take(heap, class, 3 * blocks);
    shelf_release_empty(heap);
    /* Of the first slab most is free, of the second little. */
    void *first = arena_span(slots[3 * blocks]);
    void *second = arena_span(slots[2 * blocks]);
    CHECK(first != second);
    for (unsigned i = 0; i < blocks - 2; i++)
        shelf_put(heap, slots[3 * blocks - i]);
    for (unsigned i = 0; i < 3; i++)
        shelf_put(heap, slots[2 * blocks - i]);
    void *block[4];
    CHECK(shelf_take(heap, class, block + 3, 4) == 4);
    CHECK(arena_span(block[3]) == second && arena_span(block[2]) == second && arena_span(block[1]) == second);
    CHECK(arena_span(block[0]) == first);
}

/* As they would be if each were looked at anew; a full one is in no list, nor is the one that serves. */
static void check_lists(struct heap *heap, unsigned class, const struct slab *slab)
{
    const struct shelf *shelf = &heap->shelf[class];
    bool listed = slab != shelf->current && slab->free > 0;
    CHECK(slab->bucket == (listed ? slab_bucket_for(slab) : SLAB_BUCKETS));
    bool found = false;
    for (unsigned bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = shelf->partial[bucket].first; node != NULL; node = node->next)
            found |= bucket == slab->bucket && LIST_ENTRY(node, struct slab, link) == slab;
    CHECK(found == listed);
}

static void slabs_are_listed_by_what_is_free(void)
{
    struct heap *heap = heap_own();
    uint64_t seed = 11;
    for (unsigned class = 0; class < SIZE_CLASSES_FIXED; class++) {
        unsigned count = size_classes[class].blocks * 5 / 2;
        take(heap, class, count);
        for (; count > 0; slots[1] = slots[count--]) {
            size_t i = 1 + random_below(&seed, count);
            void *p = slots[i];
            slots[i] = slots[1];
            const struct slab *slab = arena_span(p);
            shelf_put(heap, p);
            if (arena_span(p) == slab)
                check_lists(heap, class, slab);
        }
    }
}

static void blocks_go_back_up_to_a_foreign_one(void)
{
    struct heap *heap = heap_own();
    struct view *word;
    struct heap *other = heap_other(&word);
    const unsigned class = 9;
    void *theirs;
    CHECK(shelf_take(other, class, &theirs, 1) == 1);
    take(heap, class, 6);
    void *run[] = {slots[1], slots[6], slots[3], theirs, slots[2]};
    uint64_t out = heap->shelf[class].blocks_out;
    CHECK(shelf_put_all(heap, class, run, 0) == 0);
    CHECK(shelf_put_all(heap, class, run, 2) == 2 && heap->shelf[class].blocks_out == out - 2);
    CHECK(shelf_put_all(heap, class, run + 2, 3) == 1 && heap->shelf[class].blocks_out == out - 3);
    CHECK(shelf_put_all(heap, class, run + 3, 2) == 0);
    CHECK(shelf_put_all(heap, class + 1, run + 4, 1) == 0);
    CHECK(shelf_put_all(other, class, run + 3, 2) == 1);
    shelf_put(heap, slots[2]);
    CHECK(heap->shelf[class].blocks_out == out - 4);
}

/* A thread that loads a table of a terabyte. */
static void more_blocks_than_32_bits_are_counted(void)
{
    const unsigned class = 9;
    struct heap *heap = heap_own();
    take(heap, class, 6);
    heap->shelf[class].blocks_out += UINT32_MAX;
    take(heap, class, 6);
    CHECK(heap->shelf[class].blocks_out == (uint64_t)UINT32_MAX + 12);
    struct class_use use = {0};
    class_use_add(&use, heap, class);
    CHECK(class_use_live(&use) == (size_t)UINT32_MAX + 12 && use.in_slabs == 0);
}

static void put_twice(uintptr_t p)
{
    shelf_put(heap_own(), (void *)p);
    shelf_put(heap_own(), (void *)p);
}

static void put_once(uintptr_t p)
{
    shelf_put(heap_own(), (void *)p);
}

static void faults_end_the_process(void)
{
    struct heap *heap = heap_own();
    take(heap, 4, 10);
    CHECK_DIES(put_twice, slots[5], "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
    CHECK_DIES(put_once, (char *)slots[5] + 8,
               "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
}

static void slabs_change_owners(void)
{
    struct view *word;
    struct heap *heap = heap_own();
    struct heap *other = heap_other(&word);
    const unsigned class = 4;
    take(other, class, 100);
    CHECK(shelf_part_with(heap, class) == NULL);
    struct slab *slab = shelf_part_with(other, class);
    CHECK(slab != NULL);
    CHECK(other->shelf[class].blocks_out == 0);
    shelf_adopt(heap, slab);
    CHECK(heap->shelf[class].blocks_out == 100);
    for (int i = 1; i <= 100; i++) {
        CHECK(heap_of(slots[i]) == heap);
        shelf_put(heap, slots[i]);
    }
    CHECK(heap->shelf[class].blocks_out == 0);
    CHECK(shelf_part_with(other, class) == NULL);
}

static void full_slabs_stay(void)
{
    struct view *word;
    heap_own();
    struct heap *other = heap_other(&word);
    take(other, 20, size_classes[20].blocks);
    CHECK(shelf_part_with(other, 20) == NULL);
    shelf_put(other, slots[1]);
    CHECK(shelf_part_with(other, 20) != NULL);
}

static void slabs_can_be_prepared(void)
{
    struct heap *heap = heap_own();
    const unsigned class = 12;
    CHECK(shelf_room(heap, class) == 0);
    CHECK(shelf_prepare(heap, class) && shelf_prepare(heap, class));
    CHECK(shelf_room(heap, class) == 2 * size_classes[class].blocks);
    size_t before = span_used_bytes();
    take(heap, class, 2 * size_classes[class].blocks);
    CHECK(shelf_room(heap, class) == 0);
    CHECK(span_used_bytes() == before);
}

/* Which classes have any is known: nobody walks a list for nothing. Another heap that takes such a slab over knows it too. */
static void prepared_slabs_go_back(void)
{
    struct heap *heap = heap_own();
    const unsigned class = 12;
    struct view *word;
    struct heap *other = heap_other(&word);
    size_t before = span_used_bytes();
    CHECK(shelf_prepare(heap, class) && shelf_prepare(heap, class) && shelf_prepare(heap, class));
    CHECK(heap->prepared == (uint64_t)1 << class);
    shelf_adopt(other, shelf_part_with(heap, class));
    CHECK(other->prepared == (uint64_t)1 << class);
    void *block;
    CHECK(shelf_take(heap, class, &block, 1) == 1);
    shelf_release_empty(heap);
    CHECK(heap->prepared == 0 && heap->counts->slabs[class] == 1 && shelf_room(heap, class) == size_classes[class].blocks - 1);
    shelf_release_empty(other);
    CHECK(other->prepared == 0 && other->counts->slabs[class] == 0);
    shelf_put(heap, block);
    shelf_release_empty(heap);
    CHECK(heap->counts->slabs[class] == 0 && span_used_bytes() <= before + STOCK_GROUPS * 16 * UNIT_SIZE);
    /* A slab with a block in use is none of them. */
    CHECK(shelf_take(heap, class, &block, 1) == 1);
    shelf_leave(heap, class);
    shelf_adopt(other, shelf_part_with(heap, class));
    CHECK(heap->prepared == 0 && other->prepared == 0);
    shelf_put(other, block);
}

enum { SETTLERS = 400, SETTLER_BYTES = 600, ONE_IN = 8 };

static unsigned char content(unsigned i, size_t at)
{
    return (unsigned char)(i * 7 + at * 3 + 1);
}

static void check_content(const unsigned char *p, unsigned i)
{
    for (size_t at = 0; at < SETTLER_BYTES; at++)
        CHECK(p[at] == content(i, at));
}

/* Every eighth of the blocks stays, all with their content, in slots[0] and what follows, and none in a magazine. Returns how many. */
static unsigned leave_sparse(struct heap *heap)
{
    for (unsigned i = 0; i < SETTLERS; i++) {
        unsigned char *p = slots[i] = hak_malloc(SETTLER_BYTES);
        CHECK(p != NULL);
        for (size_t at = 0; at < SETTLER_BYTES; at++)
            p[at] = content(i, at);
    }
    for (unsigned i = 0; i < SETTLERS; i++)
        if (i % ONE_IN != 0)
            hak_free(slots[i]);
    magazine_flush_all(heap);
    for (unsigned i = 0; i < SETTLERS / ONE_IN; i++)
        slots[i] = slots[i * ONE_IN];
    return SETTLERS / ONE_IN;
}

static void drop_settlers(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        check_content(slots[i], i * ONE_IN);
        hak_free(slots[i]);
    }
}

/* Blocks that are resized leave slabs of which more than half is free, until as few slabs are left as they need. */
static void resized_blocks_leave_sparse_slabs(void)
{
    struct heap *heap = heap_own();
    unsigned class = size_class_of(SETTLER_BYTES);
    unsigned blocks = size_classes[class].blocks;
    unsigned count = leave_sparse(heap);
    uint64_t slabs = heap->counts->slabs[class];
    uint64_t out = heap->shelf[class].blocks_out;
    CHECK(slabs >= 2 + 2 * (uint64_t)count / blocks);
    for (unsigned i = 0; i < count; i++)
        CHECK((slots[i] = hak_realloc(slots[i], SETTLER_BYTES + i % 2)) != NULL);
    CHECK(heap->shelf[class].blocks_out == out);
    CHECK(heap->counts->slabs[class] <= 2 + (uint64_t)count / blocks);
    for (unsigned i = 0; i < count; i++)
        CHECK(hak_realloc(slots[i], SETTLER_BYTES) == slots[i]);
    drop_settlers(count);
}

/* Nor in a full slab, nor in the one that blocks are taken from now, which one that is alone becomes. */
static void settled_blocks_stay(void)
{
    struct heap *heap = heap_own();
    unsigned class = size_class_of(SETTLER_BYTES);
    (void)baseline(heap);
    void *alone = hak_malloc(SETTLER_BYTES);
    struct slab *slab = arena_span(alone);
    magazine_flush_all(heap);
    shelf_leave(heap, class);
    CHECK(heap->shelf[class].current == NULL && slab_is_sparse(slab));
    CHECK(hak_realloc(alone, SETTLER_BYTES) == alone);
    CHECK(heap->shelf[class].current == slab && !slab_is_sparse(slab));
    for (unsigned i = 0; i < SETTLERS; i++)
        slots[i] = hak_malloc(SETTLER_BYTES);
    for (unsigned i = 0; i < SETTLERS; i++)
        CHECK(hak_realloc(slots[i], SETTLER_BYTES + i % 2) == slots[i]);
    for (unsigned i = 0; i < SETTLERS; i++)
        hak_free(slots[i]);
    hak_free(alone);
}

/* Inside the door, and where they are another heap's. */
static void blocks_that_cannot_settle_stay(void)
{
    struct heap *heap = heap_own();
    struct view *word;
    struct heap *other = heap_other(&word);
    unsigned count = leave_sparse(heap);
    heap->in_door = 1;
    for (unsigned i = 0; i < count; i++)
        CHECK(hak_realloc(slots[i], SETTLER_BYTES) == slots[i]);
    heap->in_door = 0;
    const unsigned class = 20;
    void *theirs[1];
    CHECK(shelf_take(other, class, theirs, 1) == 1);
    shelf_leave(other, class);
    CHECK(slab_is_sparse(arena_span(theirs[0])));
    CHECK(hak_realloc(theirs[0], size_classes[class].size) == theirs[0]);
    CHECK(slab_is_sparse(arena_span(theirs[0])));
    shelf_put(other, theirs[0]);
    drop_settlers(count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(blocks_come_from_as_many_slabs_as_needed),
        UNIT_TEST(blocks_are_aligned_as_their_size_is),
        UNIT_TEST(empty_slabs_go_back),
        UNIT_TEST(more_blocks_than_32_bits_are_counted),
        UNIT_TEST(fullest_slab_serves_first),
        UNIT_TEST(slabs_are_listed_by_what_is_free),
        UNIT_TEST(blocks_go_back_up_to_a_foreign_one),
        UNIT_TEST(faults_end_the_process),
        UNIT_TEST(slabs_change_owners),
        UNIT_TEST(full_slabs_stay),
        UNIT_TEST(slabs_can_be_prepared),
        UNIT_TEST(prepared_slabs_go_back),
        UNIT_TEST(resized_blocks_leave_sparse_slabs),
        UNIT_TEST(settled_blocks_stay),
        UNIT_TEST(blocks_that_cannot_settle_stay),
    };
    return cmocka_run_group_tests_name("shelf", tests, NULL, NULL);
}
