/* learn/arms.h: policies as changes of the mode's values. */
#include "unit.h"

#include "config/policy.h"
#include "learn/arms.h"

static void says_what_the_mode_says_but_for_its_changes(void)
{
    struct arm arm = {.count = 0};
    CHECK(arm_value(&arm, KNOB_PURGE_MS, 0) == knob_of_mode(KNOB_PURGE_MS, 0));
    arm_set(&arm, KNOB_PURGE_MS, 0, 50);
    CHECK(arm_value(&arm, KNOB_PURGE_MS, 0) == 50 && arm.count == 1);
    arm_set(&arm, KNOB_PURGE_MS, 0, 60);
    CHECK(arm_value(&arm, KNOB_PURGE_MS, 0) == 60 && arm.count == 1);
    arm_set(&arm, KNOB_BIGCACHE_MS, 3, 7);
    CHECK(arm_value(&arm, KNOB_BIGCACHE_MS, 3) == 7 && arm.count == 2);
    CHECK(arm_value(&arm, KNOB_BIGCACHE_MS, 4) == knob_of_mode(KNOB_BIGCACHE_MS, 4));
    arm_set(&arm, KNOB_PURGE_MS, 0, knob_of_mode(KNOB_PURGE_MS, 0));
    CHECK(arm.count == 1);
}

static void has_room_for_a_change_of_every_value(void)
{
    struct arm arm = {.count = 0};
    uint32_t values = 0;
    for (enum knob knob = 0; knob < KNOBS; knob++) {
        for (unsigned i = 0; i < knob_info[knob].count; i++)
            arm_set(&arm, knob, i, knob_of_mode(knob, i) + 1);
        values += knob_info[knob].count;
    }
    CHECK(values == CHANGES_MOST && arm.count == values);
    arm_set(&arm, KNOB_MAGAZINE_BYTES, 5, 200);
    CHECK(arm_value(&arm, KNOB_MAGAZINE_BYTES, 5) == 200 && arm.count == values);
}

static void order_makes_no_difference(void)
{
    struct arm a = {.count = 0};
    struct arm b = {.count = 0};
    CHECK(arm_says_the_same(&a, &b));
    arm_set(&a, KNOB_PURGE_MS, 0, 50);
    arm_set(&a, KNOB_BIGCACHE_BYTES, 0, 99);
    CHECK(!arm_says_the_same(&a, &b));
    arm_set(&b, KNOB_BIGCACHE_BYTES, 0, 99);
    arm_set(&b, KNOB_PURGE_MS, 0, 50);
    CHECK(arm_says_the_same(&a, &b) && arm_says_the_same(&b, &a));
    arm_set(&b, KNOB_PURGE_MS, 0, 51);
    CHECK(!arm_says_the_same(&a, &b) && !arm_says_the_same(&b, &a));
}

static void switching_leaves_nothing_behind(void)
{
    struct arm mode = {.count = 0};
    struct arm a = {.count = 0};
    struct arm b = {.count = 0};
    struct arm found;
    arm_set(&a, KNOB_PURGE_MS, 0, 50);
    arm_set(&a, KNOB_BIGCACHE_MS, 3, 70);
    arm_set(&b, KNOB_BIGCACHE_MS, 3, 80);
    arm_set(&b, KNOB_MAGAZINE_BYTES, 9, 4096);
    arm_switch(&mode, &a);
    arm_of_knobs(&found);
    CHECK(arm_says_the_same(&found, &a));
    arm_switch(&a, &b);
    arm_of_knobs(&found);
    CHECK(arm_says_the_same(&found, &b) && knob_get(KNOB_PURGE_MS, 0) == knob_of_mode(KNOB_PURGE_MS, 0));
    arm_switch(&b, &mode);
    arm_of_knobs(&found);
    CHECK(found.count == 0);
}

static void pinned_values_are_nobodys(void)
{
    struct arm mode = {.count = 0};
    struct arm a = {.count = 0};
    struct arm found;
    policy.purge_ms = 123;
    knob_pin(KNOB_PURGE_MS);
    arm_set(&a, KNOB_PURGE_MS, 0, 50);
    arm_switch(&mode, &a);
    CHECK(knob_get(KNOB_PURGE_MS, 0) == 123);
    arm_of_knobs(&found);
    CHECK(found.count == 0);
}

static void times_tell_how_long_it_takes(void)
{
    struct arm a = {.count = 0};
    struct arm b = {.count = 0};
    CHECK(arm_delay_ms(&a, &b) == 0);
    arm_set(&b, KNOB_BIGCACHE_BYTES, 0, 99);
    CHECK(arm_delay_ms(&a, &b) == 0);
    arm_set(&b, KNOB_BIGCACHE_MS, 2, 300);
    CHECK(arm_delay_ms(&a, &b) == knob_of_mode(KNOB_BIGCACHE_MS, 2) && arm_delay_ms(&b, &a) == arm_delay_ms(&a, &b));
    arm_set(&a, KNOB_PURGE_MS, 0, 5000);
    CHECK(arm_delay_ms(&a, &b) == 5000);
    arm_set(&b, KNOB_PURGE_MS, 0, 5000);
    CHECK(arm_delay_ms(&a, &b) == knob_of_mode(KNOB_BIGCACHE_MS, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(says_what_the_mode_says_but_for_its_changes),
        UNIT_TEST(has_room_for_a_change_of_every_value),
        UNIT_TEST(order_makes_no_difference),
        UNIT_TEST(switching_leaves_nothing_behind),
        UNIT_TEST(pinned_values_are_nobodys),
        UNIT_TEST(times_tell_how_long_it_takes),
    };
    return cmocka_run_group_tests_name("arms", tests, NULL, NULL);
}
