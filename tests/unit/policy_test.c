/* config/policy.h: modes. */
#include "unit.h"

#include <string.h>

#include "config/policy.h"
#include "policies.h"

static void starts_balanced(void)
{
    struct policy before = policy;
    CHECK(policy_set_mode("balanced"));
    CHECK(policies_equal(before, policy));
}

static void every_named_mode_exists(void)
{
    char names[] = POLICY_MODES;
    int modes = 0;
    for (char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", "), modes++) {
        CHECK(policy_set_mode(name));
        CHECK(policy.heartbeat_bytes > 0);
        CHECK(policy.magazine_bytes[0] <= policy.thread_cache_bytes);
    }
    CHECK(modes >= 3);
}

static void modes_are_ordered_by_memory(void)
{
    CHECK(policy_set_mode("minimal"));
    struct policy minimal = policy;
    CHECK(policy_set_mode("balanced"));
    struct policy balanced = policy;
    CHECK(policy_set_mode("fast"));
    CHECK(minimal.magazine_bytes[0] < balanced.magazine_bytes[0] && balanced.magazine_bytes[0] < policy.magazine_bytes[0]);
    CHECK(minimal.bigcache_bytes < balanced.bigcache_bytes && balanced.bigcache_bytes < policy.bigcache_bytes);
    CHECK(minimal.purge_ms < balanced.purge_ms && balanced.purge_ms < policy.purge_ms);
}

static void unknown_mode_changes_nothing(void)
{
    CHECK(policy_set_mode("fast"));
    struct policy before = policy;
    CHECK(!policy_set_mode(""));
    CHECK(!policy_set_mode("Fast"));
    CHECK(!policy_set_mode("fastest"));
    CHECK(policies_equal(before, policy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(starts_balanced), UNIT_TEST(every_named_mode_exists), UNIT_TEST(modes_are_ordered_by_memory),
        UNIT_TEST(unknown_mode_changes_nothing)};
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
