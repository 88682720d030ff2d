/* config/knobs.h: what steers the allocator, its limits, and who may not touch it. */
#include "unit.h"

#include <string.h>

#include "config/knobs.h"
#include "config/policy.h"
#include "config/size_class.h"

static void policy_is_what_knobs_say(void)
{
    knob_set(KNOB_MAGAZINE_BYTES, 3, 12345);
    CHECK(policy.magazine_bytes[3] == 12345 && policy.magazine_bytes[2] == 64 << 10 && policy.magazine_bytes[4] == 64 << 10);
    knob_set(KNOB_BATCH_EIGHTHS, SIZE_CLASSES - 1, 7);
    CHECK(policy.batch_eighths[SIZE_CLASSES - 1] == 7);
    knob_set(KNOB_THREAD_CACHE_BYTES, 0, 1 << 20);
    CHECK(policy.thread_cache_bytes == 1 << 20);
    knob_set(KNOB_BIGCACHE_BYTES, 0, 77);
    CHECK(policy.bigcache_bytes == 77);
    knob_set(KNOB_BIGCACHE_MS, SIZE_BINS - 1, 78);
    CHECK(policy.bigcache_ms[SIZE_BINS - 1] == 78 && policy.bigcache_ms[0] == 1000);
    knob_set(KNOB_KEPT_MOST_BYTES, 0, 79);
    CHECK(policy.kept_most_bytes == 79);
    knob_set(KNOB_PURGE_MS, 0, 80);
    CHECK(policy.purge_ms == 80);
    knob_set(KNOB_PURGE_DOUBLINGS, 0, 5);
    CHECK(policy.purge_doublings == 5);
    knob_set(KNOB_HUGE_FILL, 0, 60);
    CHECK(policy.huge_fill == 60);
}

static void each_keeps_to_its_limits(void)
{
    for (enum knob knob = 0; knob < KNOBS; knob++) {
        const struct knob_info *info = &knob_info[knob];
        CHECK(info->name[0] != '\0' && info->unit[0] != '\0' && info->about[0] != '\0' && info->least < info->most);
        CHECK(memchr(info->name, '\0', sizeof info->name) != NULL && memchr(info->unit, '\0', sizeof info->unit) != NULL
              && memchr(info->about, '\0', sizeof info->about) != NULL);
        for (unsigned i = 0; i < info->count; i++) {
            knob_set(knob, i, UINT64_MAX);
            CHECK(knob_get(knob, i) == info->most);
            knob_set(knob, i, 0);
            CHECK(knob_get(knob, i) == info->least);
        }
    }
}

static void names_are_unlike(void)
{
    for (enum knob knob = 0; knob < KNOBS; knob++)
        for (enum knob other = 0; other < knob; other++)
            CHECK(strcmp(knob_info[knob].name, knob_info[other].name) != 0);
}

static void pinned_ones_stay(void)
{
    knob_pin(KNOB_PURGE_MS);
    CHECK(knob_is_pinned(KNOB_PURGE_MS) && !knob_is_pinned(KNOB_BIGCACHE_MS));
    knob_set(KNOB_PURGE_MS, 0, 5);
    CHECK(policy_set_mode("fast"));
    CHECK(knob_get(KNOB_PURGE_MS, 0) == 1000 && knob_of_mode(KNOB_PURGE_MS, 0) == 10000);
    CHECK(knob_get(KNOB_BIGCACHE_MS, 0) == 10000);
}

static void values_of_modes_are_within_the_limits(void)
{
    char names[] = POLICY_MODES;
    for (const char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", ")) {
        CHECK(policy_set_mode(name));
        for (enum knob knob = 0; knob < KNOBS; knob++) {
            for (unsigned i = 0; i < knob_info[knob].count; i++) {
                uint64_t value = knob_of_mode(knob, i);
                CHECK(value >= knob_info[knob].least && value <= knob_info[knob].most && knob_get(knob, i) == value);
            }
        }
    }
}

static void bins_are_doublings(void)
{
    CHECK(size_bin(0) == 0 && size_bin(1) == 0 && size_bin(64 << 10) == 0);
    for (unsigned bin = 1; bin < SIZE_BINS - 1; bin++) {
        size_t most = (size_t)(64 << 10) << bin;
        CHECK(size_bin(most / 2 + 1) == bin && size_bin(most) == bin && size_bin(most + 1) == bin + 1);
    }
    CHECK(size_bin((size_t)1 << 30) == SIZE_BINS - 2 && size_bin(SIZE_MAX) == SIZE_BINS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(policy_is_what_knobs_say), UNIT_TEST(each_keeps_to_its_limits),
        UNIT_TEST(names_are_unlike),         UNIT_TEST(pinned_ones_stay),
        UNIT_TEST(values_of_modes_are_within_the_limits), UNIT_TEST(bins_are_doublings),
    };
    return cmocka_run_group_tests_name("knobs", tests, NULL, NULL);
}
