/* span/growth.h, and who offsets what: large/large.h. */
#include "unit.h"

#include "arena/arena.h"
#include "config/policy.h"
#include "fake_os.h"
#include "grains.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "span/growth.h"
#include "span/limit.h"
#include "span/span.h"
#include "span/superslab.h"

/* So much is given back for less growth, too. */
#define BATCH (64 * KIB)

/* As a heap does for a slab. */
static char *take(size_t grains)
{
    char *at = grains_take_any(grains);
    large_offset_growth(grains * grain_bytes);
    return at;
}

/* Every other grain of a superslab is free and was written: there are no two neighbours. */
static void leave_holes(void)
{
    char *run = take(superslab_grains);
    for (size_t i = 0; i < superslab_grains; i += 2)
        grains_give(run + i * grain_bytes, 1, true);
}

static size_t holes(void)
{
    return superslab_grains / 2 * grain_bytes;
}

static void growth_is_offset(void)
{
    grains_init();
    leave_holes();
    size_t before = limit_bytes;
    CHECK(span_dirty_bytes() == holes());
    (void)take(2);
    size_t least = 2 * grain_bytes;
    size_t given = holes() - span_dirty_bytes();
    CHECK(given >= least && given <= max_size(least, BATCH));
    CHECK(limit_bytes == before + least - given);
}

/* What is free goes first where it was freed the longest ago. */
static void oldest_goes_first(void)
{
    grains_init();
    fake_clock_set(1000);
    char *old = take(superslab_grains);
    char *young = take(superslab_grains);
    grains_write_words(old, superslab_grains, 5);
    grains_write_words(young, superslab_grains, 5);
    grains_give(old + 2 * grain_bytes, 1, true);
    fake_clock_set(2000);
    grains_give(young, 1, true);
    grains_give(young + 2 * grain_bytes, 1, true);
    CHECK(span_purge_some(grain_bytes) == grain_bytes);
    grains_check_words(old + 2 * grain_bytes, 1, 0);
    CHECK(span_dirty_bytes() == 2 * grain_bytes);
    CHECK(span_purge_some(grain_bytes) == grain_bytes);
    CHECK(span_dirty_bytes() == grain_bytes); /* a part of the superslab: the rest waits for its turn */
    CHECK(span_purge_some(SIZE_MAX) == grain_bytes);
    CHECK(span_purge_some(SIZE_MAX) == 0);
    grains_check_words(young + grain_bytes, 1, 5);
}

/* Of huge pages growth gives nothing back. A younger superslab, of which it does, is not before them then. */
static void who_is_passed_by_keeps_its_turn(void)
{
    enum { DELAY_MS = 1000 };
    grains_init();
    policy.purge_ms = DELAY_MS;
    char *old = grains_take_any(superslab_grains);
    char *young = grains_take_any(superslab_grains);
    superslab_of(old)->huge = true;
    fake_clock_set(1000);
    grains_give(old, superslab_grains / 2, true);
    fake_clock_set(2000);
    grains_give(young, 2, true);
    CHECK(span_purge_some(grain_bytes) == grain_bytes);
    CHECK(span_purge_old(1001 + DELAY_MS, SIZE_MAX) == superslab_grains / 2 * grain_bytes);
    CHECK(span_dirty_bytes() == grain_bytes);
}

static void below_the_peak_nothing_is_given_back(void)
{
    grains_init();
    char *once = take(2 * superslab_grains);
    grains_give(once, 2 * superslab_grains, true);
    CHECK(span_purge_all() == 2 * superslab_grains * grain_bytes);
    leave_holes();
    CHECK(span_dirty_bytes() == holes());
    for (int i = 0; i < 8; i++)
        (void)take(2);
    CHECK(span_dirty_bytes() == holes());
}

static size_t purged(void)
{
    struct span_stats stats;
    span_look(&stats);
    return stats.purged_bytes;
}

/* What is given back is wanted again, and again: the process pays for so much, and then grows. */
static void no_more_is_offset_than_a_multiple_of_the_growth(void)
{
    enum { TURNS = 1000 };
    size_t most = 0;
    char *ones[SUPERSLAB_SIZE / UNIT_SIZE / 2];
    grains_init();
    leave_holes();
    for (int i = 0; i < TURNS; i++) {
        char *two = take(2);
        most = max_size(most, limit_bytes);
        for (size_t one = 0; one < superslab_grains / 2; one++)
            ones[one] = grains_take_any(1);
        for (size_t one = 0; one < superslab_grains / 2; one++)
            grains_give(ones[one], 1, true);
        if (i % 2 == 0)
            grains_give(two, 2, true);
    }
    CHECK(purged() > holes() && purged() <= GROWTH_OFFSETS * most);
}

static void it_is_not_counted_as_too_early(void)
{
    grains_init();
    policy.purge_ms = 1000;
    fake_clock_set(1000);
    leave_holes();
    CHECK(span_purge_some(SIZE_MAX) == holes());
    for (size_t i = 0; i < superslab_grains / 2; i++)
        (void)grains_take_any(1);
    char *run = grains_take_any(4);
    fake_clock_set(3000);
    (void)span_purge_old(3000, SIZE_MAX); /* learns */
    grains_give(run, 4, true);
    CHECK(span_purge_old(4001, SIZE_MAX) == 4 * grain_bytes); /* after one delay, not after two */
}

static void refused_purge_ends(void)
{
    grains_init();
    leave_holes();
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(span_purge_some(BATCH) == 0);
    (void)take(2);
    CHECK(span_dirty_bytes() == holes());
    fake_os_obey();
    CHECK(span_purge_some(SIZE_MAX) == holes());
}

/* As locked memory is. */
static void what_is_refused_keeps_nobody_waiting(void)
{
    grains_init();
    char *locked = take(superslab_grains);
    char *other = take(superslab_grains);
    grains_write_words(locked, 2, 5);
    grains_write_words(other, 1, 5);
    grains_give(locked, 2, true);
    grains_give(other, 1, true);
    fake_os_refuse(FAKE_PURGE, 1, 1);
    CHECK(span_purge_some(grain_bytes) == 0);
    CHECK(span_purge_some(grain_bytes) == grain_bytes);
    grains_check_words(other, 1, 0);
    grains_check_words(locked, 2, 5);
    CHECK(span_purge_some(SIZE_MAX) == 2 * grain_bytes);
}

/* The pages of one unit cannot go alone. */
static void huge_pages_stay_whole(void)
{
    policy.huge = HUGE_ON;
    grains_init();
    leave_holes();
    (void)take(2);
    CHECK(span_dirty_bytes() == holes());
}

static void a_kept_block_makes_room(void)
{
    bool zero;
    struct large_freed freed;
    grains_init();
    (void)take(superslab_grains); /* what it has grown by so far */
    void *block = large_alloc(4 * MIB, UNIT_SIZE, &zero);
    CHECK(large_free(block, NULL, &freed) == LARGE_FINE);
    CHECK(bigcache_bytes() == 4 * MIB);
    (void)take(2);
    CHECK(bigcache_bytes() == 0);
    CHECK(span_dirty_bytes() > 0);
    size_t before = limit_bytes;
    (void)take(2); /* of what the block was */
    CHECK(limit_bytes == before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(growth_is_offset),
        UNIT_TEST(oldest_goes_first),
        UNIT_TEST(who_is_passed_by_keeps_its_turn),
        UNIT_TEST(below_the_peak_nothing_is_given_back),
        UNIT_TEST(no_more_is_offset_than_a_multiple_of_the_growth),
        UNIT_TEST(it_is_not_counted_as_too_early),
        UNIT_TEST(refused_purge_ends),
        UNIT_TEST(what_is_refused_keeps_nobody_waiting),
        UNIT_TEST(huge_pages_stay_whole),
        UNIT_TEST(a_kept_block_makes_room),
    };
    return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
