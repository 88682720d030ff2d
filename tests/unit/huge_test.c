/* span/huge.h: which superslabs are put into huge pages, when, and when they are split again. */
#include "unit.h"

#include <string.h>

#include "arena/arena.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "heap/stock.h"
#include "heaps.h"
#include "large/large.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/shards.h"
#include "span/span.h"

enum { PASS_MS = 250, START_MS = 5000, PAGES = 12, RUNS = PAGES + 1, PAGE_UNITS = HUGE_SUPERSLABS * SUPERSLAB_UNITS };

/* More units than a page may lack when it becomes huge. */
enum { GIVEN = PAGE_UNITS / 10 };

static char *runs[RUNS]; /* each of a huge page */
static uint64_t now_ms;

/* Pages of the size that is this machine's are the only ones that are ever huge. */
static void needs_huge_pages(void **state)
{
    if (os_huge_page_size() != HUGE_SIZE)
        skip();
    unit_run(state);
}

static void start(unsigned pages, int content)
{
    size_class_init();
    CHECK(arena_init());
    now_ms = START_MS;
    fake_clock_set(now_ms);
    for (unsigned i = 0; i < pages; i++) {
        bool zero;
        CHECK((runs[i] = span_take(PAGE_UNITS, PAGE_UNITS, &zero)) != NULL);
        if (content != 0)
            memset(runs[i], content, HUGE_SIZE);
    }
}

static void passes(unsigned count)
{
    for (; count > 0; count--) {
        now_ms += PASS_MS;
        for (unsigned looks = 0; looks < RUNS + 1; looks++)
            huge_consider(now_ms + looks);
    }
}

static unsigned huge_ones(unsigned pages)
{
    unsigned huge = 0;
    for (unsigned i = 0; i < pages; i++)
        huge += huge_is_at(runs[i]) && huge_is_at(runs[i] + SUPERSLAB_SIZE);
    return huge;
}

static void small_processes_have_none(void)
{
    start(7, 1);
    passes(10);
    CHECK(huge_ones(7) == 0);
}

static void what_has_settled_becomes_huge(void)
{
    start(PAGES, 1);
    passes(1);
    CHECK(huge_ones(PAGES) == 0);
    passes(1);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void what_is_not_full_stays(void)
{
    start(PAGES, 1);
    span_give(runs[3] + 5 * UNIT_SIZE, 1, true);
    passes(1);
    span_give(runs[4] + SUPERSLAB_SIZE + 5 * UNIT_SIZE, 1, true);
    bool zero;
    CHECK(span_take(2, 1, &zero) != NULL && span_take(1, 1, &zero) != NULL); /* the second is of runs[3] or runs[4] */
    passes(1);
    CHECK(huge_ones(PAGES) == PAGES - 2);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES - 1);
}

static void what_is_not_in_memory_stays(void)
{
    start(PAGES, 0);
    memset(runs[0], 1, HUGE_SIZE);
    memset(runs[1], 1, HUGE_SIZE / 4 * 3);
    passes(4);
    CHECK(huge_ones(PAGES) == 1 && huge_is_at(runs[0]));
}

static void policy_says_how_much_is_enough(void)
{
    start(PAGES, 0);
    policy.huge_fill = 75;
    memset(runs[0], 1, HUGE_SIZE / 4 * 3);
    memset(runs[1], 1, HUGE_SIZE / 4 * 3 - UNIT_SIZE);
    passes(4);
    CHECK(huge_ones(PAGES) == 1 && huge_is_at(runs[0]));
}

/* Nobody counts as absent what of it was not in memory. */
static void what_is_wholly_free_is_filled_no_more(void)
{
    start(PAGES, 0);
    policy.huge_fill = 75;
    memset(runs[0], 1, HUGE_SIZE / 4 * 3);
    passes(4);
    CHECK(huge_is_at(runs[0]) && huge_filled == HUGE_SIZE / 4);
    span_give(runs[0], PAGE_UNITS, true);
    CHECK(huge_filled == 0 && span_dirty_bytes() == HUGE_SIZE);
}

static void give_back_meanwhile(void)
{
    char *given = runs[0] + 5 * UNIT_SIZE;
    fake_os_before_collapse(NULL);
    span_give(given, 3, true);
    (void)span_purge_all();
    memset(given, 0, 3 * UNIT_SIZE); /* as the kernel fills what is not there */
}

static void what_a_page_fills_that_was_given_back_goes_back_again(void)
{
    start(PAGES, 1);
    passes(1);
    fake_os_before_collapse(give_back_meanwhile);
    passes(1);
    CHECK(!huge_is_at(runs[0]) && os_resident(runs[0] + 5 * UNIT_SIZE, 3 * UNIT_SIZE) == 0);
    CHECK(os_resident(runs[0], 5 * UNIT_SIZE) == 5 * UNIT_SIZE);
}

static void modes_without_huge_pages_have_none(void)
{
    start(PAGES, 1);
    policy.huge = HUGE_OFF;
    passes(4);
    CHECK(huge_ones(PAGES) == 0);
}

static void refusals_are_no_loss(void)
{
    start(PAGES, 1);
    fake_os_refuse(FAKE_COLLAPSE, 1, FAKE_EVERY);
    passes(4);
    CHECK(huge_ones(PAGES) == 0 && fake_os_refused() > 1);
    fake_os_obey();
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void who_has_none_is_asked_once(void)
{
    start(PAGES, 1);
    fake_os_refuse(FAKE_NEVER_COLLAPSE, 1, FAKE_EVERY);
    passes(4);
    CHECK(huge_ones(PAGES) == 0 && fake_os_refused() == 1);
}

static void not_huge_any_more(void)
{
    CHECK(!huge_is_at(runs[2]));
}

/* Units of it may have come into memory untouched. */
static void what_is_given_back_is_split(void)
{
    start(PAGES, 1);
    passes(2);
    span_give(runs[2], GIVEN, false);
    CHECK(span_dirty_bytes() == GIVEN * UNIT_SIZE && huge_is_at(runs[2]));
    fake_os_before_purge(not_huge_any_more);
    CHECK(span_purge_all() == GIVEN * UNIT_SIZE);
    fake_os_before_purge(NULL);
    CHECK(!huge_is_at(runs[2]) && huge_ones(PAGES) == PAGES - 1);
    bool zero;
    CHECK(span_take(GIVEN, 1, &zero) == runs[2] && zero);
    passes(2);
    CHECK(!huge_is_at(runs[2]));
}

/* They are not worth a huge page, until somebody wants all that there is. */
static void few_free_units_stay(void)
{
    enum { FEW = SUPERSLAB_UNITS / 8, LATER_MS = 60000 };
    start(PAGES, 1);
    passes(2);
    span_give(runs[2], FEW, false);
    span_give(runs[3], FEW, false);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == 0 && huge_is_at(runs[2]) && huge_is_at(runs[3]));
    span_give(runs[2] + FEW * UNIT_SIZE, 1, false);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == (FEW + 1) * UNIT_SIZE && !huge_is_at(runs[2]) && huge_is_at(runs[3]));
    CHECK(span_purge_all() == FEW * UNIT_SIZE && !huge_is_at(runs[3]));
}

/* Units of each were free, and are taken again: nobody looks at them at each heartbeat, and each time that the process grows. */
static void what_is_full_again_is_not_looked_at(void)
{
    enum { LATER_MS = 60000 };
    bool zero;
    start(PAGES, 1);
    passes(2);
    for (unsigned i = 0; i < PAGES; i++) {
        span_give(runs[i], 1, true);
        CHECK(span_take(1, 1, &zero) == runs[i]);
    }
    span_give(runs[3], 1, true);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == 0 && huge_ones(PAGES) == PAGES);
    unsigned queued = 0;
    for (unsigned i = 0; i < shards_count(); i++)
        for (const struct list_node *node = span_shards[i].dirty_queue.first; node != NULL; node = node->next)
            queued++;
    CHECK(queued == 1);
    CHECK(span_purge_all() == UNIT_SIZE);
}

/* The other half counts as huge until it gives something back too; both together become a page again. */
static void halves_are_split_by_themselves(void)
{
    start(PAGES, 1);
    passes(2);
    char *half = runs[2] + SUPERSLAB_SIZE;
    span_give(half, 10, true);
    CHECK(span_purge_all() == 10 * UNIT_SIZE);
    CHECK(huge_is_at(runs[2]) && !huge_is_at(half));
    span_give(runs[2], 10, false);
    CHECK(span_dirty_bytes() == 10 * UNIT_SIZE);
    CHECK(span_purge_all() == 10 * UNIT_SIZE && !huge_is_at(runs[2]));
    bool zero;
    for (int i = 0; i < 2; i++)
        memset(span_take(10, 1, &zero), 1, 10 * UNIT_SIZE);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void split_half(char *half)
{
    bool zero;
    span_give(half, GIVEN, true);
    CHECK(span_purge_all() == GIVEN * UNIT_SIZE && !huge_is_at(half));
    CHECK(span_take(GIVEN, 1, &zero) == half);
}

static void a_page_with_one_half_split_becomes_huge_again(void)
{
    start(PAGES, 1);
    passes(2);
    char *half = runs[2] + SUPERSLAB_SIZE;
    split_half(half);
    passes(4);
    CHECK(huge_is_at(runs[2]) && !huge_is_at(half)); /* what it has given back is not in memory again */
    size_t filled = huge_filled;
    memset(half, 1, GIVEN * UNIT_SIZE);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES && huge_filled == filled);
    split_half(runs[2]);
    memset(runs[2], 1, GIVEN * UNIT_SIZE);
    fake_os_refuse(FAKE_COLLAPSE, 1, 1);
    passes(2);
    CHECK(!huge_is_at(runs[2]) && !huge_is_at(half)); /* the kernel was told of both, and then that it may not */
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

/* ---- Holes in slabs. */

enum { BLOCK = 4096, BLOCKS = 32 * 1024 * 1024 / BLOCK };

static char *blocks[BLOCKS];

static struct heap *full_heap(void)
{
    now_ms = START_MS;
    fake_clock_set(now_ms);
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

#define HUGE_TEST(function) {#function, needs_huge_pages, NULL, NULL, &(struct unit_case){function}}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HUGE_TEST(small_processes_have_none),
        HUGE_TEST(what_has_settled_becomes_huge),
        HUGE_TEST(what_is_not_full_stays),
        HUGE_TEST(what_is_not_in_memory_stays),
        HUGE_TEST(policy_says_how_much_is_enough),
        HUGE_TEST(what_is_wholly_free_is_filled_no_more),
        HUGE_TEST(what_a_page_fills_that_was_given_back_goes_back_again),
        HUGE_TEST(modes_without_huge_pages_have_none),
        HUGE_TEST(refusals_are_no_loss),
        HUGE_TEST(who_has_none_is_asked_once),
        HUGE_TEST(what_is_given_back_is_split),
        HUGE_TEST(few_free_units_stay),
        HUGE_TEST(what_is_full_again_is_not_looked_at),
        HUGE_TEST(halves_are_split_by_themselves),
        HUGE_TEST(a_page_with_one_half_split_becomes_huge_again),
        HUGE_TEST(few_holes_stay),
        HUGE_TEST(many_holes_split_it),
        HUGE_TEST(what_a_page_has_filled_is_given_back_again),
        HUGE_TEST(what_a_page_has_filled_serves_again),
        HUGE_TEST(stock_that_a_page_has_filled_comes_into_use),
        HUGE_TEST(ends_that_a_page_has_filled_come_into_use),
    };
    return cmocka_run_group_tests_name("huge", tests, NULL, NULL);
}
