/* check/nearest.h: what is said of addresses in live, cached and freed blocks, between them, and elsewhere. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "check/nearest.h"
#include "hakmem.h"
#include "heap/door.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "large/large.h"

static void expect(const void *address, const char *text)
{
    char found[160];
    size_t length = nearest_describe((uintptr_t)address, found, sizeof found);
    CHECK(length == strlen(found));
    if (strcmp(found, text) != 0)
        fprintf(stderr, "wanted: %s\nfound:  %s\n", text, found);
    CHECK(strcmp(found, text) == 0);
}

static void expect_block(const char *at, size_t offset, const char *kind, size_t size)
{
    char text[160];
    snprintf(text, sizeof text, "%zu bytes into a %s block of %zu B at %p", offset, kind, size, (const void *)at);
    expect(at + offset, text);
}

static void knows_small_blocks(void)
{
    char *live = hak_malloc(60);
    char *cached = hak_malloc(60);
    hak_free(cached);
    expect_block(live, 0, "live", 64);
    expect_block(live, 63, "live", 64);
    expect_block(cached, 5, "freed", 64);
    hak_purge(HAK_PURGE_CACHED);
    expect_block(live, 63, "live", 64);
    expect_block(cached, 5, "freed", 64);
    /* Blocks of 48 bytes leave the last bytes of a unit. */
    if (units_per_page() == 1) {
        char *slab = (char *)((uintptr_t)hak_malloc(48) & ~(UNIT_SIZE - 1));
        expect(slab + UNIT_SIZE - 1, "in the unused end of a slab of blocks of 48 B");
    }
}

static void knows_large_blocks(void)
{
    char text[160];
    char *live = hak_malloc(200000);
    size_t usable = hak_malloc_usable_size(live);
    expect_block(live, 0, "live", usable);
    expect_block(live, 150001, "live", usable);
    snprintf(text, sizeof text, "3 bytes behind the end of a live block of %zu B at %p", usable, (void *)live);
    if (usable % UNIT_SIZE != 0)
        expect(live + usable + 3, text);
    hak_free(live);
    expect(live + 9, "in the first 8 KiB of a freed large block");
    large_evict_before(UINT64_MAX);
    expect(live + 9, "in the first 8 KiB of a freed large block");
    expect(live + 100000, "in free memory of the heap");
}

/* Tags of those stay where they began. */
static void knows_blocks_that_lie_where_others_lay(void)
{
    enum { COUNT = 16, EACH = 128 << 10 };
    char *before[COUNT];
    char *low = NULL;
    for (int i = 0; i < COUNT; i++) {
        before[i] = hak_malloc(EACH);
        low = low == NULL || before[i] < low ? before[i] : low;
    }
    for (int i = 0; i < COUNT; i++)
        hak_free(before[i]);
    large_evict_before(UINT64_MAX);
    char *live = hak_malloc((size_t)COUNT * EACH);
    CHECK(live == low);
    size_t usable = hak_malloc_usable_size(live);
    for (int i = 0; i < COUNT; i++)
        expect_block(live, (size_t)(before[i] - live) + 1, "live", usable);
    expect_block(live, usable - 1, "live", usable);
    hak_free(live);
    large_evict_before(UINT64_MAX);
    for (int i = 0; i < COUNT; i++)
        expect(before[i], "in the first 8 KiB of a freed large block");
}

static void knows_far_ends(void)
{
    char *live = hak_malloc(2 * GIB + 64 * MIB);
    CHECK(live != NULL);
    expect_block(live, 2 * GIB + 63 * MIB, "live", hak_malloc_usable_size(live));
    hak_free(live);
}

static void knows_other_threads_blocks(void)
{
    (void)heap_own();
    struct view *word;
    struct heap *other = heap_other(&word);
    char *block;
    CHECK(shelf_take(other, size_class_of(100), (void **)&block, 1) == 1);
    expect_block(block, 1, "live", 112);
}

static void knows_what_is_not_its_own(void)
{
    static char variable;
    expect(&variable, "not in the heap"); /* before the start */
    char *live = hak_malloc(1);
    expect(&variable, "not in the heap");
    expect(NULL, "not in the heap");
    expect((void *)UINTPTR_MAX, "not in the heap");
    expect(live + ((size_t)1 << 45), "not in the heap");
    expect(arena.base - 1, "not in the heap");
    expect(arena.base + (arena.limit << POINTER_ALIGN_SHIFT), "not in the heap");
}

static void cuts_to_fit(void)
{
    char found[8];
    CHECK(nearest_describe(0, found, sizeof found) == 7 && strcmp(found, "not in ") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(knows_small_blocks),        UNIT_TEST(knows_large_blocks),        UNIT_TEST(knows_blocks_that_lie_where_others_lay),
        UNIT_TEST(knows_far_ends),
        UNIT_TEST(knows_other_threads_blocks), UNIT_TEST(knows_what_is_not_its_own), UNIT_TEST(cuts_to_fit),
    };
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
