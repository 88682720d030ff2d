/* config/options.h: what the environment sets, and the exact warnings. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "config/options.h"
#include "config/policy.h"
#include "fake_os.h"
#include "policies.h"

/* The longest environment of these tests. */
enum { ENTRIES = 4 };

static void load(const char *first, const char *second)
{
    char *environment[ENTRIES] = {(char *)(uintptr_t)"PATH=/bin", (char *)(uintptr_t)first, (char *)(uintptr_t)second};
    options_load(environment);
}

static struct policy of_mode(const char *name)
{
    struct policy saved = policy;
    CHECK(policy_set_mode(name));
    struct policy wanted = policy;
    policy = saved;
    return wanted;
}

static void check_policy(struct policy wanted)
{
    CHECK(policies_equal(policy, wanted));
}

static void legal_values_take_effect(void)
{
    load("HAKMEM_MODE=fast", NULL);
    check_policy(of_mode("fast"));
    load("HAKMEM_PURGE=delay=250", NULL);
    CHECK(policy.purge_ms == 250);
    load("HAKMEM_PURGE=delay=0", NULL);
    CHECK(policy.purge_ms == 0);
    load("HAKMEM_PURGE=delay=86400000", NULL);
    CHECK(policy.purge_ms == 86400000);
    CHECK(policy.purger && policy.huge == HUGE_AUTO);
    load("HAKMEM_PURGE=thread=off,delay=9,huge=on", NULL);
    CHECK(!policy.purger && policy.purge_ms == 9 && policy.huge == HUGE_ON);
    load("HAKMEM_PURGE=huge=off,thread=on", NULL);
    CHECK(policy.purger && policy.purge_ms == 9 && policy.huge == HUGE_OFF);
    load("HAKMEM_PURGE=huge=auto", NULL);
    CHECK(policy.huge == HUGE_AUTO);
    load("HAKMEM_DISABLE=1", "HAKME_MODE=x");
}

static void mode_comes_first_in_any_order(void)
{
    load("HAKMEM_PURGE=delay=7", "HAKMEM_MODE=minimal");
    struct policy wanted = of_mode("minimal");
    wanted.purge_ms = 7;
    check_policy(wanted);
}

static void last_of_a_name_wins(void)
{
    load("HAKMEM_MODE=minimal", "HAKMEM_MODE=fast");
    check_policy(of_mode("fast"));
}

static void load_bad_mode(uintptr_t unused)
{
    (void)unused;
    struct policy before = policy;
    load("HAKMEM_MODE=turbo", NULL);
    check_policy(before);
}

static void load_bad_purge(uintptr_t value)
{
    struct policy before = policy;
    load((const char *)value, NULL);
    check_policy(before);
}

static void load_unknown(uintptr_t unused)
{
    (void)unused;
    load("HAKMEM_MOD=fast", "HAKMEM_=1");
}

static void bad_values_get_one_line(void)
{
    CHECK_SAYS(load_bad_mode, 0,
               "hakmem: warning: HAKMEM_MODE=turbo: legal values are minimal, fast, balanced; using balanced\n");
    static const char *const bad[] = {
        "HAKMEM_PURGE=",         "HAKMEM_PURGE=delay",           "HAKMEM_PURGE=delay=", "HAKMEM_PURGE=delay=-1",
        "HAKMEM_PURGE=delay=1s", "HAKMEM_PURGE=delay=86400001", "HAKMEM_PURGE=delay=99999999999999999999",
        "HAKMEM_PURGE=delay= 1", "HAKMEM_PURGE=1000",            "HAKMEM_PURGE=thread", "HAKMEM_PURGE=thread=1",
        "HAKMEM_PURGE=huge=of",  "HAKMEM_PURGE=delay=1,",        "HAKMEM_PURGE=,",      "HAKMEM_PURGE=delay=1;thread=on",
        "HAKMEM_PURGE=off",      "HAKMEM_PURGE=delay=5,huge=no",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[300];
        snprintf(line, sizeof line,
                 "hakmem: warning: %s: legal values are delay=MS (0 to 86400000), thread=on|off, huge=auto|on|off, or "
                 "several with commas between; using the mode's\n",
                 bad[i]);
        CHECK_SAYS(load_bad_purge, bad[i], line);
    }
}

static void unknown_names_get_one_line(void)
{
    CHECK_SAYS(load_unknown, 0,
               "hakmem: warning: HAKMEM_MOD=fast: no such option; the options are HAKMEM_MODE, HAKMEM_PURGE\n"
               "hakmem: warning: HAKMEM_=1: no such option; the options are HAKMEM_MODE, HAKMEM_PURGE\n");
}

static void secure_processes_ignore_all(void)
{
    struct policy before = policy;
    fake_os_set_secure(true);
    load("HAKMEM_MODE=fast", "HAKMEM_NONSENSE=1");
    check_policy(before);
}

static void no_environment_is_fine(void)
{
    char *empty[] = {NULL};
    options_load(NULL);
    options_load(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(legal_values_take_effect), UNIT_TEST(mode_comes_first_in_any_order),
        UNIT_TEST(last_of_a_name_wins),      UNIT_TEST(bad_values_get_one_line),
        UNIT_TEST(unknown_names_get_one_line), UNIT_TEST(secure_processes_ignore_all),
        UNIT_TEST(no_environment_is_fine),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
