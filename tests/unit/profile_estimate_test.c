/* observe/profile.h: that what samples stand for is near what was allocated. */
#include "unit.h"

#include "base/chance.h"
#include "check/check.h"
#include "observe/profile_slabs.h"
#include "profiles.h"
#include "random.h"
#include "scale.h"

enum { RATE = 16384, SIZES_MOST = 64 };

struct expectation {
    double bytes;
    double variance;
};

static void expect(struct expectation *expected, size_t size)
{
    double chance = chance_within((double)size / RATE);
    expected->bytes += (double)size;
    expected->variance += (double)size * (double)size * (1 - chance) / chance;
}

static void check_estimate(const struct expectation *expected, double estimate)
{
    double miss = estimate - expected->bytes;
    CHECK(miss * miss <= 9 * expected->variance);
}

static size_t some_size(uint64_t *seed)
{
    static const size_t limits[] = {16, 64, 300, 2000, 30000, 300000};
    return 1 + random_below(seed, limits[random_below(seed, 6)]);
}

static void balanced_loops_are_estimated_rightly(void)
{
    uint64_t seed = 5;
    struct expectation expected = {0};
    profile_begin(RATE);
    for (size_t i = 0; i < scaled_work(400000); i++) {
        size_t size = some_size(&seed);
        expect(&expected, size);
        hak_free(hak_malloc(size));
    }
    CHECK(expected.variance < expected.bytes * expected.bytes / 100);
    check_estimate(&expected, profile_estimate(profile_allocated));
    CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0 && profile_totals.live_weight == 0);
}

/* Patterns: the same few sizes, always in the same order. */
static void patterns_are_estimated_rightly(void)
{
    static const size_t sizes[] = {8, 16384, 24, 4096, 100, 48};
    struct expectation expected[6] = {{0}};
    double estimate[6] = {0};
    profile_begin(RATE);
    for (size_t i = 0; i < scaled_work(300000); i++) {
        expect(&expected[i % 6], sizes[i % 6]);
        hak_free(hak_malloc(sizes[i % 6]));
    }
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        for (size_t j = 0; j < 6; j++)
            if (site.allocated.bytes == site.allocated.count * sizes[j])
                estimate[j] += profile_scaled(&site.allocated);
    }
    for (size_t j = 0; j < 6; j++)
        check_estimate(&expected[j], estimate[j]);
}

/* How many there were, too: the largest of them come the most often. */
static void the_smallest_are_counted_rightly(void)
{
    enum { OFTEN = 2048, TIMES = 300000 };
    double count = 0;
    double variance = 0;
    profile_begin(OFTEN);
    for (int i = 0; i < TIMES; i++) {
        size_t size = i % 2 == 0 ? 1 : 8;
        double chance = chance_within((double)size / OFTEN);
        variance += (1 - chance) / chance;
        hak_free(hak_malloc(size));
    }
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        if (site.allocated.count != 0)
            count += profile_scaled(&site.allocated) * (double)site.allocated.count / (double)site.allocated.bytes;
    }
    CHECK(variance < (double)TIMES * TIMES / 150);
    CHECK((count - TIMES) * (count - TIMES) <= 9 * variance);
}

static void live_sets_are_estimated_rightly(void)
{
    enum { BLOCKS = 20000 };
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    uint64_t seed = 6;
    struct expectation all = {0};
    struct expectation half = {0};
    profile_begin(RATE);
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = some_size(&seed);
        blocks[i] = hak_malloc(sizes[i]);
        expect(&all, sizes[i]);
    }
    check_estimate(&all, profile_estimate(profile_live));
    check_estimate(&all, (double)profile_totals.live_weight);
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 2 == 0)
            hak_free(blocks[i]);
        else
            expect(&half, sizes[i]);
    }
    check_estimate(&half, profile_estimate(profile_live));
    check_estimate(&all, profile_estimate(profile_peak));
    check_estimate(&all, (double)profile_totals.peak_weight);
    check_estimate(&all, profile_estimate(profile_allocated));
    for (int i = 1; i < BLOCKS; i += 2)
        hak_free(blocks[i]);
    CHECK(profile_totals.live_weight == 0 && slabs_counts().blocks == 0 && slabs_counts().bytes == 0);
    check_estimate(&all, profile_estimate(profile_peak));
}

/* What grows where it is was requested by all that it grew. */
static void growing_blocks_are_estimated_rightly(void)
{
    enum { BLOCKS = 400, STEP = 8192, STEPS = 30 };
    static char *blocks[BLOCKS];
    struct expectation expected = {0};
    profile_begin(RATE * 16);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(40000);
        for (size_t step = 1; step <= STEPS; step++)
            blocks[i] = hak_realloc(blocks[i], 40000 + step * STEP);
        double size = 40000 + STEPS * STEP;
        double chance = chance_within(size / (RATE * 16));
        expected.bytes += size;
        expected.variance += size * size * (1 - chance) / chance;
    }
    check_estimate(&expected, profile_estimate(profile_live));
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0);
}

/* Also after they were freed. None of these is copied. */
static void grown_blocks_were_requested_whole(void)
{
    enum { BLOCKS = 2000, FIRST = 1 << 20, LAST = 3 << 20, GROWN_RATE = 1 << 20 };
    struct expectation expected = {0};
    double chance = chance_within((double)LAST / GROWN_RATE);
    profile_begin(GROWN_RATE);
    for (int i = 0; i < BLOCKS; i++) {
        hak_free(hak_realloc(hak_malloc(FIRST), LAST));
        expected.bytes += LAST;
        expected.variance += (double)LAST * LAST * (1 - chance) / chance;
    }
    check_estimate(&expected, profile_estimate(profile_allocated));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(balanced_loops_are_estimated_rightly),
        UNIT_TEST(patterns_are_estimated_rightly),
        UNIT_TEST(the_smallest_are_counted_rightly),
        UNIT_TEST(live_sets_are_estimated_rightly),
        UNIT_TEST(growing_blocks_are_estimated_rightly),
        UNIT_TEST(grown_blocks_were_requested_whole),
    };
    return cmocka_run_group_tests_name("profile_estimate", tests, NULL, NULL);
}
