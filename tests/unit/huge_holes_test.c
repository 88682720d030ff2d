/* span/huge.h: holes in slabs, and what nobody has touched, where a huge page has filled it or is to be split. */
#include "unit.h"

#include <string.h>

#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heaps.h"
#include "huges.h"
#include "large/large.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/span.h"

enum { BLOCK = 4096, BLOCKS = 32 * 1024 * 1024 / BLOCK };

static char *blocks[BLOCKS];

static struct heap *full_heap(void)
{
    start_clock();
    struct heap *heap = heap_own();
    for (unsigned i = 0; i < BLOCKS; i++) {
        CHECK((blocks[i] = hak_malloc(BLOCK)) != NULL);
        memset(blocks[i], 1, BLOCK);
    }
    return heap;
}

/* Of each `of` blocks those from `first` to before `end`. */
static void free_blocks(struct heap *heap, unsigned first, unsigned end, unsigned of)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % of >= first && i % of < end)
            hak_free(blocks[i]);
    magazine_flush_all(heap);
}

/* A heap of blocks, of which of each `of` the first `freed` are free again. */
static struct heap *heap_of_blocks(unsigned freed, unsigned of)
{
    struct heap *heap = full_heap();
    passes(2);
    free_blocks(heap, 0, freed, of);
    return heap;
}

static unsigned blocks_in_huge_pages(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        count += huge_is_at(blocks[i]);
    return count;
}

static void few_holes_stay(void)
{
    struct heap *heap = heap_of_blocks(1, 32);
    unsigned before = blocks_in_huge_pages();
    CHECK(before > BLOCKS / 4 * 3);
    CHECK(shelf_purge_all(heap) <= BLOCKS / 32 * BLOCK / 2);
    CHECK(blocks_in_huge_pages() == before);
}

static void many_holes_split_it(void)
{
    struct heap *heap = heap_of_blocks(1, 2);
    CHECK(blocks_in_huge_pages() > BLOCKS / 4 * 3);
    CHECK(shelf_purge_all(heap) >= BLOCKS / 2 * (BLOCK / 4 * 3));
    CHECK(blocks_in_huge_pages() == 0);
}

enum { HOLES_OF = 32 };

/* Whose holes, a page of 32, were given back before huge pages filled them. */
static struct heap *heap_with_filled_holes(void)
{
    struct heap *heap = full_heap();
    free_blocks(heap, 0, 1, HOLES_OF);
    size_t given = shelf_purge_all(heap);
    CHECK(given >= BLOCKS / HOLES_OF * BLOCK && given <= heap->hole_bytes);
    passes(3);
    CHECK(blocks_in_huge_pages() > BLOCKS / 4 * 3);
    CHECK(huge_filled >= given / 2 && huge_filled <= given);
    return heap;
}

/* Whichever slab splits the page. */
static void what_a_page_has_filled_is_given_back_again(void)
{
    struct heap *heap = heap_with_filled_holes();
    size_t filled = huge_filled;
    free_blocks(heap, 1, 2, 4);
    CHECK(shelf_purge_all(heap) >= BLOCKS / 4 * BLOCK + filled);
    CHECK(blocks_in_huge_pages() == 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(os_resident(blocks[i], BLOCK) == (i % HOLES_OF == 0 || i % 4 == 1 ? 0 : BLOCK));
    CHECK(huge_filled == 0 && heap->hole_bytes >= BLOCKS / 4 * BLOCK + BLOCKS / HOLES_OF * BLOCK);
}

/* Of a slab in 32 all blocks but one are free; nobody touches it after its holes were given back. */
static void free_most_of_some_slabs(struct heap *heap)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        const struct slab *slab = arena_span(blocks[i]);
        if (arena_unit(slab->base) / slab->units % 32 == 0 && blocks[i] != slab->base)
            hak_free(blocks[i]);
    }
    magazine_flush_all(heap);
}

static void sparse_slabs_that_a_page_has_filled_are_given_back_again(void)
{
    struct heap *heap = full_heap();
    free_most_of_some_slabs(heap);
    size_t given = shelf_purge_all(heap);
    passes(3);
    size_t filled = huge_filled;
    CHECK(given > 0 && filled >= given / 2 && blocks_in_huge_pages() > BLOCKS / 4 * 3);
    CHECK(shelf_purge_all(heap) >= filled);
    CHECK(huge_filled == 0);
}

static void what_a_page_has_filled_serves_again(void)
{
    struct heap *heap = heap_with_filled_holes();
    for (unsigned i = 0; i < BLOCKS / HOLES_OF; i++)
        CHECK(hak_malloc(BLOCK) != NULL);
    CHECK(huge_filled <= heap->hole_bytes);
}

/* ---- What nobody has touched, and a page has filled all the same. */

enum { STOCKED = 8, LARGE_BLOCKS = 100 };

/* No unit of what is in use so far is left over. */
static void fill_the_rest(void)
{
    for (unsigned i = 0; i < 2 * PAGE_UNITS; i++) {
        bool zero;
        void *unit = span_take(1, 1, &zero);
        CHECK(unit != NULL);
        memset(unit, 1, UNIT_SIZE);
    }
}

static void stock_that_a_page_has_filled_comes_into_use(void)
{
    struct heap *heap = full_heap();
    char *unit = NULL;
    uint32_t clean = 0;
    while (heap->stock_clean != STOCKED) {
        CHECK((unit = stock_take(heap, 1, 1, &clean)) != NULL);
        memset(unit, 1, UNIT_SIZE);
    }
    fill_the_rest();
    passes(6);
    CHECK(huge_is_at(unit) && huge_filled >= STOCKED * UNIT_SIZE);
    size_t filled = huge_filled;
    for (unsigned i = 0; i < STOCKED; i++)
        CHECK(stock_take(heap, 1, 1, &clean) != NULL && clean == 0);
    CHECK(heap->stock_clean == 0 && huge_filled == filled - STOCKED * UNIT_SIZE);
}

static size_t untouched_bytes(void)
{
    struct large_stats stats;
    large_stats(&stats);
    return stats.untouched_bytes;
}

static void ends_that_a_page_has_filled_come_into_use(void)
{
    enum { USED = 12 * UNIT_SIZE + 4096, ALL = 13 * UNIT_SIZE };
    static void *ends[LARGE_BLOCKS];
    CHECK(full_heap() != NULL); /* small processes have none */
    for (unsigned i = 0; i < LARGE_BLOCKS; i++) {
        CHECK((ends[i] = hak_malloc(USED)) != NULL);
        memset(ends[i], 1, USED);
    }
    size_t untouched = untouched_bytes();
    CHECK(untouched == LARGE_BLOCKS * (ALL - USED));
    fill_the_rest();
    passes(20);
    size_t filled = huge_filled;
    CHECK(filled >= untouched / 2);
    for (unsigned i = 0; i < LARGE_BLOCKS; i++)
        CHECK(hak_realloc(ends[i], ALL) == ends[i]);
    CHECK(untouched_bytes() == 0 && huge_filled <= filled - untouched / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HUGE_TEST(few_holes_stay),
        HUGE_TEST(many_holes_split_it),
        HUGE_TEST(what_a_page_has_filled_is_given_back_again),
        HUGE_TEST(sparse_slabs_that_a_page_has_filled_are_given_back_again),
        HUGE_TEST(what_a_page_has_filled_serves_again),
        HUGE_TEST(stock_that_a_page_has_filled_comes_into_use),
        HUGE_TEST(ends_that_a_page_has_filled_come_into_use),
    };
    return cmocka_run_group_tests_name("huge_holes", tests, NULL, NULL);
}
