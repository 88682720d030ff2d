/* The hardened library's samples: those that are guarded are of as many bytes as were asked for, and those of the profiler read as
 * zero. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/zero.h"
#include "check/guard.h"
#include "child.h"
#include "config/policy.h"
#include "hakmem.h"
#include "heap/budget.h"
#include "heap/seal.h"
#include "heaps.h"

enum { BLOCKS = 1000 };

static bool is_guarded(const void *p)
{
    struct guard_place place;
    return guard_find((uintptr_t)p, &place) && place.inside;
}

static void start_guard(void)
{
    policy.guard_bytes = 1;
    policy.guard_slots = 8;
    guard_start();
}

/* Many of a request are sampled, but for those of nothing. */
static void samples_know_their_size(void)
{
    static const size_t asked[] = {0, 1, 16, 24, 1000, 4096};
    start_guard();
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int found = 0;
        for (int round = 0; round < 20 * BLOCKS; round++) {
            char *block = hak_malloc(asked[i]);
            CHECK(hak_malloc_usable_size(block) == asked[i] && is_zero(block, asked[i]));
            memset(block, 1, asked[i]);
            found += is_guarded(block);
            hak_free_sized(block, asked[i]);
        }
        CHECK((found > 0) == (asked[i] > 0));
    }
}

/* Sizes that are no multiple of 16: the byte behind them is the block's slack, wherever in its page it lies. */
static void write_behind_sample(uintptr_t size)
{
    start_guard();
    for (;;) {
        char *volatile block = hak_malloc(size);
        if (is_guarded(block)) {
            ((volatile char *)block)[size] ^= 1;
            hak_free(block);
            _exit(0);
        }
        hak_free(block);
    }
}

static void samples_are_verified(void)
{
    static const size_t asked[] = {1, 7, 17, 24, 30, 999};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        CHECK(child_dies_of(SIGABRT, write_behind_sample, asked[i], "heap-buffer-overflow, found by free"));
}

static void samples_of_the_profiler_are_zero(void)
{
    static char *blocks[BLOCKS];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = hak_malloc(600);
            memset(blocks[i], 7, 600);
        }
        for (int i = 0; i < BLOCKS; i++)
            hak_free(blocks[i]); /* most slabs are given up, and their units keep the seals */
    }
    CHECK(hak_profile_start(1) == 0);
    hak_free(hak_malloc((size_t)64 << 20)); /* from the next request on all are samples */
    for (int sampled = 0; sampled < BLOCKS;) {
        char *block = hak_malloc(500);
        CHECK(is_zero(block, 500));
        sampled += arena_tag(block) == TAG_SAMPLED;
    }
}

/* Without their seals: else there would be more samples of small blocks than their sizes say. */
static void requests_are_charged_as_asked(void)
{
    static const size_t asked[] = {1, 16, 56, 1000, SEALED_MAX};
    struct heap *heap = heap_own();
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int64_t before = budget_position(heap);
        for (int round = 0; round < BLOCKS; round++)
            hak_free(hak_malloc(asked[i]));
        CHECK(budget_position(heap) - before == (int64_t)asked[i] * BLOCKS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(samples_know_their_size),
        UNIT_TEST(samples_are_verified),
        UNIT_TEST(samples_of_the_profiler_are_zero),
        UNIT_TEST(requests_are_charged_as_asked),
    };
    return cmocka_run_group_tests_name("hardened_samples", tests, NULL, NULL);
}
