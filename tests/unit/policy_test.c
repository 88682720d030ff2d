/* config/policy.h: modes. */
#include "unit.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "config/knobs.h"
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
    CHECK(minimal.guard_bytes == 0 && balanced.guard_bytes != 0 && policy.guard_bytes == 0);
}

static void learning_is_balanced_and_learns(void)
{
    static const char *const names[] = {"learning", "research"};
    for (size_t i = 0; i < 2; i++) {
        CHECK(policy_set_mode(names[i]));
        CHECK(policy.learn == LEARN_ON && policy.learn_parts == LEARN_ALL && strcmp(policy_mode_name(), names[i]) == 0);
        CHECK(policy.trace == (i == 0 ? TRACE_NOTHING : TRACE_ROUTE));
        struct policy learning = policy;
        CHECK(policy_set_mode("balanced"));
        CHECK(policy.learn == LEARN_OFF && policy.trace == TRACE_NOTHING);
        CHECK(memcmp(&learning, &policy, offsetof(struct policy, learn)) == 0);
    }
}

static void memory_is_dearest_in_minimal(void)
{
    CHECK(policy_set_mode("minimal"));
    uint32_t minimal = policy.memory_price;
    CHECK(policy_set_mode("fast"));
    uint32_t fast = policy.memory_price;
    CHECK(policy_set_mode("balanced"));
    CHECK(fast < policy.memory_price && policy.memory_price < minimal);
}

static void check_learn(const char *value, enum learn learn, unsigned parts)
{
    CHECK(policy_set_learn(value));
    CHECK(policy.learn == learn && policy.learn_parts == parts && policy.learn_is_pinned);
}

static void the_learner_has_parts(void)
{
    check_learn("off", LEARN_OFF, LEARN_ALL);
    check_learn("observe:sites", LEARN_OBSERVE, LEARN_SITES);
    check_learn("on", LEARN_ON, LEARN_ALL);
    check_learn("on:evolution,bigcache", LEARN_ON, LEARN_BIGCACHE | LEARN_EVOLUTION);
    check_learn("on:elo,classes,classes", LEARN_ON, LEARN_ELO | LEARN_CLASSES);
    check_learn("observe", LEARN_OBSERVE, LEARN_ALL);
    CHECK(policy_set_mode("learning"));
    CHECK(policy.learn == LEARN_OBSERVE); /* the user has said so */
    static const char *const bad[] = {"", "1", "On", "off:", "off:sites", "on:", "on:site", "on,sites", "on:sites,", "on:,sites", "observe: elo"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!policy_set_learn(bad[i]));
        CHECK(policy.learn == LEARN_OBSERVE && policy.learn_parts == LEARN_ALL);
    }
}

static void switching_leaves_what_starts_alone(void)
{
    policy.soft_limit = 12345;
    policy.checks = CHECK_FREE;
    CHECK(policy_switch_mode("research"));
    CHECK(policy.learn == LEARN_ON && policy.trace == TRACE_NOTHING && policy.guard_bytes == 256 << 20);
    knob_set(KNOB_BIGCACHE_MS, 3, 77); /* learned */
    knob_pin(KNOB_PURGE_MS);
    CHECK(policy_switch_mode("fast"));
    CHECK(policy.bigcache_ms[3] == 10000 && policy.purge_ms == 1000 && policy.learn == LEARN_OFF);
    CHECK(policy.guard_bytes == 256 << 20 && policy.heartbeat_bytes == 16 << 20);
    CHECK(policy.soft_limit == 12345 && policy.checks == CHECK_FREE);
    policy.guard_bytes = 1 << 20;
    CHECK(policy_switch_mode("balanced"));
    CHECK(policy.heartbeat_bytes == 1 << 20);
    struct policy before = policy;
    CHECK(!policy_switch_mode("none"));
    CHECK(policies_equal(before, policy) && strcmp(policy_mode_name(), "balanced") == 0);
}

/* Whoever ends last, all values are of one mode. */
static void *switch_often(void *name)
{
    for (int i = 0; i < 1000; i++)
        CHECK(policy_switch_mode(name));
    return NULL;
}

static void threads_may_switch_at_once(void)
{
    static const char *const names[] = {"minimal", "fast", "balanced"};
    for (int round = 0; round < 10; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            CHECK(pthread_create(&threads[i], NULL, switch_often, (void *)(uintptr_t)names[i]) == 0);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(policy.heartbeat_bytes == policy_of_mode()->heartbeat_bytes && policy.memory_price == policy_of_mode()->memory_price);
        for (enum knob knob = 0; knob < KNOBS; knob++)
            for (unsigned i = 0; i < knob_info[knob].count; i++)
                CHECK(knob_get(knob, i) == knob_of_mode(knob, i));
    }
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
        UNIT_TEST(unknown_mode_changes_nothing),
        UNIT_TEST(learning_is_balanced_and_learns),
        UNIT_TEST(memory_is_dearest_in_minimal),
        UNIT_TEST(the_learner_has_parts),
        UNIT_TEST(switching_leaves_what_starts_alone),
        UNIT_TEST(threads_may_switch_at_once),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
