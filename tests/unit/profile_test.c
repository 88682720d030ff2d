/* observe/profile.h: that sampled blocks are good blocks, and what is counted of them. That the estimates are right, and what happens
 * under load, have tests of their own, and so has the file that is written (profile_dump_test.c). */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "check/nearest.h"
#include "observe/depot.h"
#include "profiles.h"

/* ---- Blocks. */

static void serves_each_size(void)
{
    profile_begin(1);
    for (size_t size = 1; size <= 1 << 20; size = size < 300 ? size + 1 : size * 9 / 8) {
        char *block = hak_malloc(size);
        CHECK(is_sampled(block) && hak_malloc_usable_size(block) >= size && (uintptr_t)block % (size < 16 ? 8 : 16) == 0);
        CHECK(profile_totals.live.count == 1 && profile_totals.live.bytes == size);
        memset(block, 1, size);
        hak_free_sized(block, size);
        CHECK(profile_totals.live.count == 0);
    }
    char *empty = hak_malloc(0);
    CHECK(empty != NULL && !is_sampled(empty));
    hak_free(empty);
}

static void serves_each_alignment(void)
{
    profile_begin(1);
    for (size_t alignment = 8; alignment <= 1 << 20; alignment *= 2) {
        for (size_t size = 1; size < 100000; size *= 7) {
            void *block;
            CHECK(hak_posix_memalign(&block, alignment, size) == 0);
            CHECK(is_sampled(block) && (uintptr_t)block % alignment == 0);
            CHECK(profile_totals.live.bytes == size);
            memset(block, 2, size);
            hak_free_aligned_sized(block, alignment, size);
            block = hak_aligned_alloc(alignment, size);
            CHECK(is_sampled(block) && (uintptr_t)block % alignment == 0);
            hak_free(block);
        }
    }
    void *block = hak_valloc(100);
    CHECK(is_sampled(block));
    hak_free(block);
    CHECK(profile_totals.live.count == 0);
}

static void zeroes_and_resizes(void)
{
    profile_begin(1);
    for (int i = 0; i < 300; i++) {
        unsigned char *block = hak_calloc(7, 13);
        CHECK(is_sampled(block));
        for (int j = 0; j < 91; j++)
            CHECK(block[j] == 0);
        memset(block, i, 91);
        for (size_t size = 80; size < 3000000; size = size * 9 / 8) { /* with room to grow, sometimes */
            block = hak_realloc(block, size);
            CHECK(is_sampled(block) && block[0] == (unsigned char)i && block[79] == (unsigned char)i);
            CHECK(profile_totals.live.count == 1 && profile_totals.live.bytes == size);
        }
        block = hak_reallocarray(block, 5, 10);
        CHECK(is_sampled(block) && block[49] == (unsigned char)i);
        CHECK(hak_realloc(block, 0) == NULL);
        CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0);
    }
}

static void notes_the_size_of_large_blocks(void)
{
    profile_begin(1);
    char *block = hak_malloc(1 << 20);
    CHECK(profile_totals.live.bytes == 1 << 20);
    block = hak_realloc(block, 3 << 20);
    CHECK(profile_totals.live.bytes == 3 << 20 && profile_totals.live_weight == 3 << 20);
    block = hak_realloc(block, 100000);
    CHECK(profile_totals.live.bytes == 100000 && profile_totals.allocated.count == 1);
    hak_free(block);
    CHECK(profile_totals.live.bytes == 0 && profile_totals.live_weight == 0);
    /* One that the BigCache lends again begins anew. */
    block = hak_malloc(100000);
    CHECK(profile_totals.live.count == 1 && profile_totals.allocated.count == 2);
    hak_free(block);
}

static void *volatile kept;

static void free_twice(uintptr_t size)
{
    profile_begin(1);
    void *other = hak_malloc(size); /* so that the slab stays */
    kept = hak_malloc(size);
    CHECK(is_sampled(kept) && is_sampled(other));
    hak_free(kept);
    hak_free(kept);
}

static void free_inside(uintptr_t size)
{
    profile_begin(1);
    kept = (char *)hak_malloc(size) + 16;
    hak_free(kept);
}

static void resize_after_free(uintptr_t size)
{
    profile_begin(1);
    kept = hak_malloc(size);
    hak_free(kept);
    kept = hak_realloc(kept, size + 100);
}

static void free_by_too_large_a_size(uintptr_t size)
{
    profile_begin(1);
    kept = hak_malloc(size);
    hak_free_sized(kept, 2 * size + 100);
}

#define FAULT(text) "hakmem: fatal: " text " of 0x[0-9a-f]+ \\(class [0-9]+ B, thread [0-9]+\\)"

static void misuse_is_reported(void)
{
    CHECK_DIES(free_twice, 64, FAULT("double free"));
    CHECK_DIES(free_twice, 20000, FAULT("double free"));
    CHECK_DIES(free_twice, 100000, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(large, [0-9]+ B, thread [0-9]+\\)");
    CHECK_DIES(free_inside, 64, FAULT("invalid free"));
    CHECK_DIES(resize_after_free, 64, FAULT("use after free"));
    CHECK_DIES(free_by_too_large_a_size, 64, FAULT("too large a size in free"));
}

/* ---- What is counted. */

static __attribute__((noinline)) void *caller(size_t size)
{
    void *volatile block = hak_malloc(size);
    return block;
}

static void stacks_begin_with_the_programs_call(void)
{
    profile_begin(1);
    hak_free(caller(64));
    hak_free(caller(100000));
    for (uint32_t i = 0; i < 2; i++) {
        struct site site;
        size_t count;
        sites_copy(i, &site);
        const uintptr_t *calls = depot_get(site.stack, &count);
        CHECK(count > 1 && calls[0] - (uintptr_t)caller < 300);
    }
    CHECK(profile_totals.sites == 2);
}

static void sites_are_stacks_and_sizes(void)
{
    profile_begin(1);
    for (volatile int i = 0; i < 20; i++)
        hak_free(caller(i < 10 ? 60 + 4 * (size_t)(i % 2) : 200));
    CHECK(profile_totals.sites == 2 && profile_totals.allocated.count == 20);
    struct site site;
    sites_copy(0, &site);
    CHECK(site.allocated.count == 10 && site.allocated.bytes == 620);
}

/* At the peak, of all sites with blocks of this size. */
static uint64_t count_at_peak(size_t size)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        if (site.allocated.bytes == site.allocated.count * size) {
            CHECK(site.peak.bytes == site.peak.count * size);
            count += site.peak.count;
        }
    }
    return count;
}

static void peaks_are_of_one_moment(void)
{
    profile_begin(1);
    void *first = caller(1000);
    void *second = caller(2000);
    hak_free(first);
    hak_free(second);
    first = caller(2500); /* less than both */
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 1 && count_at_peak(2500) == 0);
    CHECK(profile_totals.peak_weight == 3000);
    second = caller(1000);
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 0 && count_at_peak(2500) == 1);
    hak_free(first);
    hak_free(second);
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 0 && count_at_peak(2500) == 1);
    CHECK(profile_totals.peak_weight == 3500);
}

static void lifetimes_are_counted(void)
{
    static const uint64_t lifetimes[LIFETIMES] = {0, 5, 10, 999, 1000, 99999, 999999, 10000000};
    profile_begin(1);
    for (volatile int i = 0; i < LIFETIMES; i++) {
        fake_clock_set(5000);
        void *block = caller(64);
        fake_clock_set(5000 + lifetimes[i]);
        hak_free(block);
    }
    struct site site;
    sites_copy(0, &site);
    for (int i = 0; i < LIFETIMES; i++)
        CHECK(site.lifetimes[i] == 1);
}

static void starts_and_stops(void)
{
    CHECK(hak_profile_stop() == EALREADY);
    CHECK(hak_profile_start(((size_t)1 << 40) + 1) == EINVAL);
    CHECK(hak_profile_start(0) == 0);
    CHECK(profile_totals.rate == 512 << 10 && profile_runs());
    CHECK(hak_profile_start(0) == EALREADY);
    CHECK(hak_profile_stop() == 0);
    CHECK(hak_profile_stop() == EALREADY);
    profile_begin(1);
    void *before = hak_malloc(100);
    CHECK(is_sampled(before));
    CHECK(hak_profile_stop() == 0 && !profile_runs());
    void *block = hak_malloc(100);
    CHECK(!is_sampled(block) && profile_totals.live.count == 1);
    /* Another profile knows nothing of what is from before. */
    profile_begin(1);
    CHECK(profile_totals.live.count == 0 && profile_totals.sites == 0);
    hak_free(before);
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0);
    hak_free(hak_malloc(200));
    CHECK(profile_totals.allocated.count == 1);
}

/* A site's sizes differ by little: a block that has become another size is another site's. One that has grown was requested as a
 * whole; one that has shrunk had been requested as it was at its largest, and counts as freed there. */
static void resized_blocks_go_to_other_sites(void)
{
    struct site sites[3];
    profile_begin(1);
    void *block = caller(2 << 20);
    block = hak_realloc(block, 3 << 20);
    sites_copy(0, &sites[0]);
    sites_copy(1, &sites[1]);
    CHECK(profile_totals.sites == 2 && sites[0].live.count == 0 && sites[0].live.bytes == 0);
    CHECK(sites[0].allocated.count == 0 && sites[0].allocated.bytes == 0);
    CHECK(sites[1].live.count == 1 && sites[1].live.bytes == 3 << 20);
    CHECK(sites[1].allocated.count == 1 && sites[1].allocated.bytes == 3 << 20);
    block = hak_realloc(block, 1 << 20);
    sites_copy(1, &sites[1]);
    sites_copy(2, &sites[2]);
    CHECK(sites[1].live.count == 0 && sites[1].live.bytes == 0 && sites[1].allocated.bytes == 3 << 20);
    CHECK(sites[2].live.count == 1 && sites[2].live.bytes == 1 << 20 && sites[2].allocated.count == 0);
    CHECK(profile_totals.allocated.count == 1 && profile_totals.allocated.bytes == 3 << 20);
    hak_free(block);
    for (uint32_t i = 0; i < 3; i++) {
        sites_copy(i, &sites[i]);
        uint64_t freed = 0;
        for (int j = 0; j < LIFETIMES; j++)
            freed += sites[i].lifetimes[j];
        CHECK(freed == (i == 1) && sites[i].live.count == 0 && sites[i].live.bytes == 0);
    }
    CHECK(profile_totals.live.bytes == 0);
}

/* Of blocks that were requested large, and have shrunk, as many are samples as if they had been requested small. */
static void shrunk_blocks_count_by_their_size(void)
{
    enum { BLOCKS = 2000, SMALL = 64 << 10 };
    void *blocks[BLOCKS];
    profile_begin(512 << 10);
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_realloc(hak_malloc(4 << 20), SMALL)) != NULL);
    uint64_t wanted = (uint64_t)BLOCKS * SMALL;
    CHECK(profile_totals.allocated.count > BLOCKS * 9 / 10);
    CHECK(profile_totals.live_weight > wanted / 3 * 2 && profile_totals.live_weight < wanted / 2 * 3);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0 && profile_totals.live.bytes == 0);
}

/* A small block that stays where it is when realloc changes its size. */
static void small_blocks_count_by_their_size(void)
{
    profile_begin(1);
    void *block = hak_malloc(10000);
    CHECK(is_sampled(block) && profile_totals.live.bytes == 10000);
    CHECK(hak_realloc(block, 5200) == block && profile_totals.live.bytes == 5200 && profile_totals.live_weight == 5200);
    CHECK(hak_realloc(block, 10100) == block && profile_totals.live.bytes == 10100 && profile_totals.allocated.bytes == 10100);
    hak_free(block);
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0);
    enum { BLOCKS = 20000 };
    static void *blocks[BLOCKS];
    CHECK(hak_profile_stop() == 0);
    profile_begin(64 << 10);
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_realloc(hak_malloc(10000), 5200)) != NULL);
    uint64_t wanted = (uint64_t)BLOCKS * 5200;
    CHECK(profile_totals.live_weight > wanted / 5 * 4 && profile_totals.live_weight < wanted / 4 * 5);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0);
}

static void frees_after_the_end_are_counted(void)
{
    profile_begin(1);
    void *small = hak_malloc(100);
    void *large = hak_malloc(100000);
    CHECK(hak_profile_stop() == 0);
    hak_free(small);
    CHECK(profile_totals.live.count == 1);
    large = hak_realloc(large, 200000);
    CHECK(profile_totals.live.bytes == 200000);
    hak_free(large);
    CHECK(profile_totals.live.count == 0);
}

static void what_an_address_is_near_is_known(void)
{
    char found[160];
    char text[160];
    profile_begin(1);
    char *block = hak_malloc(60);
    CHECK(is_sampled(block));
    for (int freed = 0; freed < 2; freed++) {
        snprintf(text, sizeof text, "5 bytes into a %s block of 64 B at %p", freed ? "freed" : "live", (void *)block);
        (void)nearest_describe((uintptr_t)block + 5, found, sizeof found);
        CHECK(strcmp(found, text) == 0);
        if (!freed)
            hak_free(block);
    }
}

static void check_mode_comes_first(void)
{
    profile_begin(1);
    void *small = hak_malloc(100);
    void *large = hak_malloc(100000);
    CHECK(is_sampled(small));
    CHECK(hak_check_start() == 0);
    CHECK(!is_sampled(hak_malloc(100)));
    small = hak_realloc(small, 5000);
    CHECK(!is_sampled(small));
    hak_free(small);
    hak_free(large);
    CHECK(profile_totals.live.count == 0);
    CHECK(hak_profile_stop() == 0);
    CHECK(hak_profile_start(1) == ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(serves_each_size),
        UNIT_TEST(serves_each_alignment),
        UNIT_TEST(zeroes_and_resizes),
        UNIT_TEST(notes_the_size_of_large_blocks),
        UNIT_TEST(misuse_is_reported),
        UNIT_TEST(stacks_begin_with_the_programs_call),
        UNIT_TEST(sites_are_stacks_and_sizes), UNIT_TEST(resized_blocks_go_to_other_sites), UNIT_TEST(shrunk_blocks_count_by_their_size),
        UNIT_TEST(small_blocks_count_by_their_size),
        UNIT_TEST(peaks_are_of_one_moment),
        UNIT_TEST(lifetimes_are_counted),
        UNIT_TEST(starts_and_stops),
        UNIT_TEST(frees_after_the_end_are_counted),
        UNIT_TEST(check_mode_comes_first),
        UNIT_TEST(what_an_address_is_near_is_known),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
