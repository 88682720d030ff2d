/* heap/stock.h: units are handed out once, and none is lost. */
#include "unit.h"

#include "heap/stock.h"
#include "heaps.h"
#include "random.h"
#include "scale.h"

enum { RUNS = 60, STEPS = 50000, UNITS_MOST = 1 << 16 };

struct run {
    char *at;
    unsigned units;
};

static bool taken[UNITS_MOST]; /* by index of unit */

/* Units that are said to be clean read as zero; afterwards none of them is. */
static void *take_aligned(struct heap *heap, unsigned units, unsigned align)
{
    uint32_t clean;
    char *at = stock_take(heap, units, align, &clean);
    CHECK(at != NULL && arena_unit(at) % align == 0);
    for (unsigned unit = 0; unit < units; unit++) {
        size_t *word = (size_t *)(void *)(at + unit * UNIT_SIZE);
        CHECK((clean >> unit & 1) == 0 || *word == 0);
        *word = 1;
    }
    return at;
}

static void *take(struct heap *heap, unsigned units)
{
    return take_aligned(heap, units, 1);
}

static void mark_taken(const struct run *run, bool now)
{
    for (size_t unit = arena_unit(run->at); unit < arena_unit(run->at) + run->units; unit++) {
        CHECK(unit < UNITS_MOST);
        CHECK(taken[unit] != now);
        taken[unit] = now;
    }
}

static void follows_a_model(void)
{
    static struct run runs[RUNS];
    uint64_t seed = 9;
    struct heap *heap = heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    size_t steps = scaled_work(STEPS);
    for (size_t step = 0; step < steps; step++) {
        struct run *run = &runs[random_below(&seed, RUNS)];
        if (random_below(&seed, 1000) == 0) {
            stock_trim(heap);
            heap->units = (size_t)1 << random_below(&seed, 12); /* groups of another size */
        }
        if (run->at != NULL) {
            mark_taken(run, false);
            stock_give(heap, run->at, run->units, 0);
            run->at = NULL;
        } else {
            uint64_t most = random_below(&seed, 2) == 0 ? SLAB_UNITS_MAX : 2;
            run->units = (unsigned)align_up(1 + random_below(&seed, most), units_per_page()); /* as those of slabs */
            run->at = take_aligned(heap, run->units, 1u << random_below(&seed, 2));
            mark_taken(run, true);
        }
    }
    for (int i = 0; i < RUNS; i++)
        if (runs[i].at != NULL)
            stock_give(heap, runs[i].at, runs[i].units, 0);
    stock_trim(heap);
    CHECK(span_used_bytes() == before);
}

/* Enough for the largest groups. */
enum { UNITS_OF_LARGE_HEAP = 1 << 16, GROUP = 16 };

static void small_heaps_hold_nothing_in_stock(void)
{
    struct heap *heap = heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    heap->units = 0;
    void *at[100];
    for (size_t i = 0; i < 100; i++) {
        at[i] = take(heap, 1);
        CHECK(span_used_bytes() == before + (i + 1) * UNIT_SIZE);
    }
    for (size_t i = 0; i < 100; i++)
        stock_give(heap, at[i], 1, 0);
    CHECK(heap->units == 0 && span_used_bytes() == before);
}

static void neighbours_serve_small_slabs(void)
{
    struct heap *heap = heap_own();
    hak_malloc_trim(0);
    heap->units = UNITS_OF_LARGE_HEAP;
    char *first = take(heap, 1);
    for (size_t i = 1; i < GROUP; i++)
        CHECK(take(heap, 1) == first + i * UNIT_SIZE);
    CHECK((uintptr_t)first % (GROUP * UNIT_SIZE) == 0);
}

/* Wherever they lie: not before they are used up are there groups again. */
static void written_units_serve_before_new_groups(void)
{
    enum { HOLES = 20 };
    struct heap *heap = heap_own();
    unsigned least = (unsigned)units_per_page();
    hak_malloc_trim(0);
    heap->units = 0;
    char *at[2 * HOLES];
    for (int i = 0; i < 2 * HOLES; i++)
        at[i] = take(heap, least);
    for (int i = 0; i < 2 * HOLES; i += 2)
        stock_give(heap, at[i], least, 0);
    heap->units = UNITS_OF_LARGE_HEAP;
    size_t before = span_used_bytes();
    size_t dirty = span_dirty_bytes();
    CHECK(dirty >= HOLES * least * UNIT_SIZE);
    for (size_t taken = least * UNIT_SIZE; taken <= HOLES * least * UNIT_SIZE; taken += least * UNIT_SIZE) {
        (void)take(heap, least);
        CHECK(span_used_bytes() == before + taken && span_dirty_bytes() == dirty - taken);
    }
}

static void clean_units_are_given_as_such(void)
{
    struct heap *heap = heap_own();
    struct span_stats before;
    struct span_stats after;
    hak_malloc_trim(0);
    heap->units = 0;
    unsigned half = (unsigned)units_per_page();
    void *at = take(heap, 2 * half);
    span_stats(&before);
    stock_give(heap, at, 2 * half, mask32(half) << half);
    span_stats(&after);
    CHECK(after.dirty_bytes == before.dirty_bytes + half * UNIT_SIZE);
    CHECK(after.used_bytes + 2 * half * UNIT_SIZE == before.used_bytes);
    hak_malloc_trim(0);
}

/* Units that lie just before a group in stock are not that group's. */
static void group_knows_its_own(void)
{
    struct heap *heap = heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    unsigned least = (unsigned)units_per_page();
    for (unsigned units = least; units < GROUP; units += least) {
        struct run runs[64];
        heap->units = UNITS_OF_LARGE_HEAP;
        for (int i = 0; i < 64; i++)
            runs[i] = (struct run){take(heap, units), units};
        for (int i = 0; i < 64; i++)
            stock_give(heap, runs[i].at, units, 0);
        stock_trim(heap);
        CHECK(span_used_bytes() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_a_model),
        UNIT_TEST(small_heaps_hold_nothing_in_stock),
        UNIT_TEST(neighbours_serve_small_slabs),
        UNIT_TEST(written_units_serve_before_new_groups),
        UNIT_TEST(clean_units_are_given_as_such),
        UNIT_TEST(group_knows_its_own),
    };
    return cmocka_run_group_tests_name("stock", tests, NULL, NULL);
}
