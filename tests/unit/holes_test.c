/* Holes in slabs (slab/holes.c, heap/holes.c): which pages are given back, and that nothing else is lost. */
#include "unit.h"

#include <string.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "os/os.h"
#include "random.h"

enum { BLOCKS_MOST = 50000 };

static char *blocks[BLOCKS_MOST];
static unsigned char expected[BLOCKS_MOST];

static void make(size_t size, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK((blocks[i] = hak_malloc(size)) != NULL);
        expected[i] = (unsigned char)(i * 7 + 1);
        memset(blocks[i], expected[i], size);
    }
}

static void drop(unsigned i)
{
    hak_free(blocks[i]);
    blocks[i] = NULL;
}

static void check_live(size_t size, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (size_t at = 0; blocks[i] != NULL && at < size; at++)
            CHECK((unsigned char)blocks[i][at] == expected[i]);
}

/* Bytes of pages of slabs with a live block, or that blocks come from next, on which there is no live block. */
static size_t hole_bytes(const struct heap *heap, size_t size, unsigned count)
{
    static bool in_use[BLOCKS_MOST * 8];
    size_t page = os_page_size();
    char *base = arena.base;
    size_t holes = 0;
    const struct slab *seen = NULL;
    const struct slab *current = heap->shelf[size_class_of(size)].current;
    memset(in_use, 0, sizeof in_use);
    for (unsigned i = 0; i < count; i++)
        for (char *at = blocks[i]; at != NULL && at < blocks[i] + size; at += at + page < blocks[i] + size ? page : 1)
            in_use[(size_t)(at - base) / page] = true;
    for (unsigned i = 0; i <= count; i++) {
        const struct slab *slab = i == count ? current : blocks[i] != NULL ? arena_span(blocks[i]) : NULL;
        if (slab == NULL || slab == seen || (slab == current && i < count))
            continue;
        seen = slab; /* blocks were made slab by slab */
        for (char *at = slab->base; at < slab->base + slab->units * UNIT_SIZE; at += page)
            holes += in_use[(size_t)(at - base) / page] ? 0 : page;
    }
    return holes;
}

/* All pages without a live block are given back, counted once, and serve again; live blocks keep their content. */
static void holes_are_given_back(void)
{
    static const size_t sizes[] = {16, 48, 512, 640, 1024, 5120, 28672, 32768};
    uint64_t seed = 3;
    struct heap *heap = heap_own();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        unsigned count = (unsigned)min_size(BLOCKS_MOST, 4 * MIB / sizes[s]);
        magazine_flush_all(heap);
        (void)shelf_purge_all(heap); /* of other classes */
        make(sizes[s], count);
        for (unsigned i = 0; i < count; i++)
            if (random_below(&seed, 20) != 0)
                drop(i);
        magazine_flush_all(heap);
        size_t before = heap->hole_bytes;
        size_t wanted = hole_bytes(heap, sizes[s], count);
        size_t bytes = shelf_purge_all(heap);
        CHECK(heap->hole_bytes == before + bytes);
        CHECK(bytes <= wanted && heap->hole_bytes >= wanted);
        CHECK(shelf_purge_all(heap) == 0);
        check_live(sizes[s], count);
        /* What was given back serves again, and is counted no more. */
        for (unsigned i = 0; i < count; i++)
            if (blocks[i] == NULL) {
                CHECK((blocks[i] = hak_malloc(sizes[s])) != NULL);
                memset(blocks[i], expected[i], sizes[s]);
            }
        check_live(sizes[s], count);
        for (unsigned i = 0; i < count; i++)
            drop(i);
    }
    hak_malloc_trim(0);
    CHECK(heap->hole_bytes == 0);
}

/* Blocks in a magazine may be handed out without anybody looking: their pages stay. */
static void cached_blocks_keep_their_pages(void)
{
    enum { SIZE = 4096, COUNT = 2 };
    struct heap *heap = heap_own();
    make(SIZE, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
    unsigned class = size_class_of(SIZE);
    CHECK(magazine_count(heap, class) >= COUNT);
    (void)shelf_purge_all(heap);
    for (unsigned i = 0; i < COUNT; i++)
        CHECK((unsigned char)blocks[i][SIZE - 1] == expected[i]);
}

/* Blocks that fill four slots of a slab of several pages, whatever a page is; of each four the first stays. */
enum { SIZE = 32768, COUNT = 512, OF_SLAB = 4 };

/* Of blocks so large so many, of which each `of`-th stays. */
static struct heap *heap_with_each(size_t size, unsigned count, unsigned of)
{
    struct heap *heap = heap_own();
    CHECK(count <= BLOCKS_MOST);
    make(size, count);
    for (unsigned i = 0; i < count; i++)
        if (i % of != 0)
            drop(i);
    magazine_flush_all(heap);
    return heap;
}

static struct heap *heap_with_holes(void)
{
    return heap_with_each(SIZE, COUNT, OF_SLAB);
}

static bool is_over(const struct heap *heap)
{
    return heap->look.class >= SIZE_CLASSES;
}

/* At all classes. Returns what went back. */
static size_t look(struct heap *heap)
{
    size_t bytes = 0;
    while (!is_over(heap))
        (void)shelf_purge_cool(heap, heap->look.ms + 1, SIZE_MAX);
    for (int part = 0; part < LOOKS_PER_DELAY; part++)
        for (shelf_begin_look(heap, heap->look.ms); !is_over(heap);)
            bytes += shelf_purge_cool(heap, heap->look.ms + 1, SIZE_MAX);
    return bytes;
}

/* A slab that was touched waits for a second look. */
static void looks_go_by_age(void)
{
    struct heap *heap = heap_with_holes();
    CHECK(look(heap) == 0);
    CHECK(look(heap) >= COUNT / OF_SLAB * 64 * KIB);
    CHECK(look(heap) == 0);
    check_live(SIZE, COUNT);
    /* A few slabs are touched again: they wait again, and they only are looked at. */
    char *again_used[OF_SLAB];
    for (int i = 0; i < OF_SLAB; i++)
        again_used[i] = hak_malloc(SIZE);
    for (int i = 0; i < OF_SLAB; i++)
        hak_free(again_used[i]);
    magazine_flush_all(heap);
    CHECK(look(heap) == 0);
    size_t again = look(heap);
    CHECK(again > 0 && again <= 4 * 96 * KIB);
}

static unsigned count_slabs(const struct heap *heap, unsigned class, enum slab_heat heat)
{
    unsigned count = 0;
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = heap->shelf[class].partial[bucket].first; node != NULL; node = node->next)
            count += LIST_ENTRY(node, struct slab, link)->heat == heat;
    return count;
}

enum { SMALL = 1024, SLABS_A_MS = 256 };

/* In many slabs one block stays. */
static struct heap *heap_with_many_slabs(void)
{
    heap_own();
    unsigned of_slab = size_classes[size_class_of(SMALL)].blocks;
    return heap_with_each(SMALL, (3 * SLABS_A_MS + 1) * of_slab, of_slab);
}

/* A look sees so many slabs for each millisecond, wherever lists change meanwhile. */
static void many_slabs_are_looked_at_in_turns(void)
{
    struct heap *heap = heap_with_many_slabs();
    unsigned class = size_class_of(SMALL);
    unsigned all = count_slabs(heap, class, SLAB_HOT);
    CHECK(all >= 3 * SLABS_A_MS);
    do {
        while (!is_over(heap))
            (void)shelf_purge_cool(heap, heap->look.ms + 1000, SIZE_MAX);
        shelf_begin_look(heap, heap->look.ms);
    } while (heap->look.class != class % LOOKS_PER_DELAY);
    while (heap->look.next == NULL || count_slabs(heap, class, SLAB_COOL) == 0)
        (void)shelf_purge_cool(heap, heap->look.ms, SIZE_MAX);
    unsigned seen = count_slabs(heap, class, SLAB_COOL);
    CHECK(seen <= SLABS_A_MS);
    (void)shelf_purge_cool(heap, heap->look.ms + 1, SIZE_MAX);
    CHECK(count_slabs(heap, class, SLAB_COOL) == seen + 2 * SLABS_A_MS);
    /* The one that is next is given up. */
    struct list_node *next = heap->look.next;
    hak_free(LIST_ENTRY(next, struct slab, link)->base);
    magazine_flush_all(heap);
    CHECK(heap->look.next != next);
    (void)shelf_purge_cool(heap, heap->look.ms + 1, SIZE_MAX);
    CHECK(is_over(heap));
    CHECK(count_slabs(heap, class, SLAB_COOL) == all - 1 && count_slabs(heap, class, SLAB_HOT) == 0);
}

/* Before it takes more than ever; and what it took last is no hole. */
static void a_larger_heap_gives_holes_back_first(void)
{
    struct heap *heap = heap_with_holes();
    CHECK(heap->hole_bytes < COUNT / OF_SLAB * 64 * KIB); /* what was never used */
    for (unsigned i = 0; i < 2 * COUNT * SIZE / 4096; i++)
        memset(hak_malloc(4096), 1, 4096);
    CHECK(heap->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    check_live(SIZE, COUNT);
}

static size_t given_back(const struct heap *heap)
{
    return heap->counts->of[COUNT_HOLE_BYTES];
}

/* Until no more than a quarter is free. */
static void growth_is_offset_part_by_part(void)
{
    struct heap *heap = heap_with_holes();
    size_t slab_bytes = size_classes[size_class_of(SIZE)].units * UNIT_SIZE;
    size_t slab_most = SLAB_UNITS_MAX * UNIT_SIZE;
    unsigned parts = 0;
    do {
        size_t before = given_back(heap);
        CHECK(shelf_prepare(heap, size_class_of(SIZE)));
        size_t given = given_back(heap) - before;
        CHECK(given < 2 * slab_bytes + slab_most);
        parts += given >= slab_bytes;
    } while (heap->units < 4 * COUNT * SIZE / UNIT_SIZE && (parts == 0 || heap->record == 0));
    CHECK(parts > 1 && heap->record > 0);
    CHECK(shelf_free_bytes(heap) < (heap->units << UNIT_SHIFT) / 3);
}

/* Where the heap stops growing, heartbeats go on. */
static void a_look_is_finished_without_growth(void)
{
    struct heap *heap = heap_with_holes();
    while (heap->look.record == 0 && heap->units < 4 * COUNT * SIZE / UNIT_SIZE)
        CHECK(shelf_prepare(heap, size_class_of(SIZE)));
    uint32_t record = heap->look.record;
    CHECK(record > 0 && heap->record == 0);
    shelf_begin_look(heap, heap->look.ms);
    CHECK(heap->look.record == record);
    for (int i = 0; i < 100 && !is_over(heap); i++)
        (void)shelf_purge_cool(heap, heap->look.ms + 1, SIZE_MAX);
    CHECK(is_over(heap) && heap->record == record && heap->look.record == 0);
    CHECK(count_slabs(heap, size_class_of(SIZE), SLAB_HOT) == 0);
}

static void a_refusal_is_no_loss(void)
{
    struct heap *heap = heap_with_holes();
    size_t before = heap->hole_bytes;
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(shelf_purge_all(heap) == 0 && heap->hole_bytes == before);
    fake_os_obey();
    check_live(SIZE, COUNT);
}

/* A slab that another heap takes over brings its holes along. */
static void holes_move_with_their_slab(void)
{
    struct heap *heap = heap_with_holes();
    struct view *word;
    struct heap *other = heap_other(&word);
    CHECK(shelf_purge_all(heap) >= COUNT / OF_SLAB * 64 * KIB);
    size_t holes = heap->hole_bytes;
    struct slab *slab = shelf_part_with(heap, size_class_of(SIZE));
    CHECK(slab != NULL && slab_absent_bytes(slab) > 0);
    CHECK(heap->hole_bytes == holes - slab_absent_bytes(slab));
    shelf_adopt(other, slab);
    CHECK(other->hole_bytes == slab_absent_bytes(slab));
    check_live(SIZE, COUNT);
}

/* Of each slab's four blocks one had pages when it was given up. */
static void what_was_a_hole_leaves_clean(void)
{
    struct heap *heap = heap_with_holes();
    hak_malloc_trim(0);
    CHECK(shelf_purge_all(heap) == 0 && heap->hole_bytes >= COUNT / OF_SLAB * 64 * KIB);
    for (unsigned i = 0; i < COUNT; i++)
        if (blocks[i] != NULL)
            drop(i);
    magazine_flush_all(heap);
    shelf_release_empty(heap);
    CHECK(span_dirty_bytes() >= COUNT / OF_SLAB * SIZE && span_dirty_bytes() <= COUNT / OF_SLAB * 2 * SIZE);
}

/* Slab by slab, what no block was taken from has no pages. */
static void new_pages_are_holes_until_they_are_used(void)
{
    struct heap *heap = heap_own();
    size_t page = os_page_size();
    unsigned class = size_class_of(1000);
    size_t before = heap->hole_bytes;
    char *first = hak_malloc(1000);
    struct slab *slab = arena_span(first);
    size_t bytes = slab->units * UNIT_SIZE;
    CHECK(heap->hole_bytes == before + slab_absent_bytes(slab));
    for (size_t used = 0, last = 0; slab->free > 0; last = used) {
        CHECK(hak_malloc(1000) != NULL);
        used = (size_t)(slab->blocks - slab->free) * slab->stride;
        CHECK(used == last || slab_absent_bytes(slab) == bytes - min_size(align_up(used, page), bytes));
        CHECK(heap->hole_bytes == before + slab_absent_bytes(slab));
    }
    CHECK(heap->shelf[class].current == slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(holes_are_given_back),   UNIT_TEST(cached_blocks_keep_their_pages),
        UNIT_TEST(looks_go_by_age),        UNIT_TEST(many_slabs_are_looked_at_in_turns),
        UNIT_TEST(a_larger_heap_gives_holes_back_first),
        UNIT_TEST(growth_is_offset_part_by_part), UNIT_TEST(a_look_is_finished_without_growth),
        UNIT_TEST(a_refusal_is_no_loss),   UNIT_TEST(holes_move_with_their_slab),
        UNIT_TEST(what_was_a_hole_leaves_clean), UNIT_TEST(new_pages_are_holes_until_they_are_used),
    };
    return cmocka_run_group_tests_name("holes", tests, NULL, NULL);
}
