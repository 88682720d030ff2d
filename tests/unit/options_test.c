/* config/options.h: what the environment sets, and the exact warnings. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config/knobs.h"
#include "config/options.h"
#include "config/paths.h"
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

static void check_limits(const char *entry, size_t soft, size_t hard)
{
    policy.soft_limit = policy.hard_limit = 1;
    load(entry, NULL);
    CHECK(policy.soft_limit == soft);
    CHECK(policy.hard_limit == hard);
}

static void limits_are_bytes_with_suffixes(void)
{
    CHECK(policy.soft_limit == 0); /* the control group's */
    CHECK(policy.hard_limit == 0);
    check_limits("HAKMEM_LIMIT=4096", 4096, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=1K", (size_t)1 << 10, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=3M:1G", (size_t)3 << 20, (size_t)1 << 30);
    check_limits("HAKMEM_LIMIT=7T:7T", (size_t)7 << 40, (size_t)7 << 40);
    check_limits("HAKMEM_LIMIT=0", SIZE_MAX, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=0:5M", SIZE_MAX, (size_t)5 << 20);
    check_limits("HAKMEM_LIMIT=5M:0", (size_t)5 << 20, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=0K:0T", SIZE_MAX, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=18446744073709551615", SIZE_MAX, SIZE_MAX);
    check_limits("HAKMEM_LIMIT=16777215T", (size_t)16777215 << 40, SIZE_MAX);
}

static void check_checks(const char *entry, unsigned checks)
{
    policy.checks = CHECK_LEAKS;
    load(entry, NULL);
    CHECK(policy.checks == checks);
}

static void checks_are_a_list(void)
{
    CHECK(policy.checks == 0);
    check_checks("HAKMEM_CHECK=0", 0);
    check_checks("HAKMEM_CHECK=1", CHECK_ALL);
    check_checks("HAKMEM_CHECK=free", CHECK_FREE);
    check_checks("HAKMEM_CHECK=redzone", CHECK_FREE | CHECK_REDZONE);
    check_checks("HAKMEM_CHECK=stacks,poison,quarantine,leaks", CHECK_ALL & ~(unsigned)CHECK_REDZONE);
    check_checks("HAKMEM_CHECK=leaks,leaks,free", CHECK_FREE | CHECK_LEAKS);
}

static void check_trace(const char *entry, enum trace trace, uintptr_t traced)
{
    policy.checks = 0;
    load(entry, NULL);
    CHECK(policy.trace == trace && policy.traced == traced && policy.checks == CHECK_FREE);
}

static void traces_name_what_is_traced(void)
{
    check_trace("HAKMEM_TRACE=ptr:0x7f001230", TRACE_ADDRESS, ~(uintptr_t)0x7f001230);
    check_trace("HAKMEM_TRACE=ptr:0xffffffffffffffff", TRACE_ADDRESS, 0);
    check_trace("HAKMEM_TRACE=ptr:heap+0x1f0", TRACE_OFFSET, ~(uintptr_t)0x1f0);
    check_trace("HAKMEM_TRACE=class:1", TRACE_CLASS, 1);
    check_trace("HAKMEM_TRACE=class:32768,/dev/null", TRACE_CLASS, 32768);
    load("HAKMEM_TRACE=route", NULL);
    CHECK(policy.trace == TRACE_ROUTE && policy.traced == TRACE_ROUTES_USUAL && policy.checks == CHECK_FREE);
    policy.checks = 0;
    load("HAKMEM_TRACE=route:1000000,/dev/null", NULL);
    CHECK(policy.trace == TRACE_ROUTE && policy.traced == 1000000 && policy.checks == 0);
    load("HAKMEM_TRACE=class:64", "HAKMEM_CHECK=1");
    CHECK(policy.trace == TRACE_CLASS && policy.checks == CHECK_ALL);
}

static void a_delay_is_pinned(void)
{
    load("HAKMEM_PURGE=thread=off", NULL);
    CHECK(!knob_is_pinned(KNOB_PURGE_MS));
    load("HAKMEM_PURGE=delay=7", NULL);
    CHECK(knob_is_pinned(KNOB_PURGE_MS));
    knob_set(KNOB_PURGE_MS, 0, 8);
    CHECK(policy.purge_ms == 7);
}

static void the_learner_is_the_modes_unless_it_is_said(void)
{
    load("HAKMEM_MODE=learning", NULL);
    CHECK(policy.learn == LEARN_ON);
    load("HAKMEM_LEARN=observe:sites,elo", "HAKMEM_MODE=learning");
    CHECK(policy.learn == LEARN_OBSERVE && policy.learn_parts == (LEARN_SITES | LEARN_ELO));
    load("HAKMEM_POLICY=/a/b", NULL);
    CHECK(strcmp(path_of(PATH_POLICY), "/a/b") == 0);
}

static void mode_does_not_undo_limits(void)
{
    load("HAKMEM_LIMIT=1G", "HAKMEM_MODE=minimal");
    struct policy wanted = of_mode("minimal");
    wanted.soft_limit = (size_t)1 << 30;
    wanted.hard_limit = SIZE_MAX;
    check_policy(wanted);
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

static void load_bad(uintptr_t value)
{
    struct policy before = policy;
    load((const char *)value, NULL);
    check_policy(before);
}

/* Each of these values gets one line, with what is legal and what is used, and changes nothing. */
static void check_refused(const char *name, const char *const *values, size_t count, const char *legal)
{
    for (size_t i = 0; i < count; i++) {
        char entry[100];
        char line[300];
        snprintf(entry, sizeof entry, "%s=%s", name, values[i]);
        snprintf(line, sizeof line, "hakmem: warning: %s: legal values are %s\n", entry, legal);
        CHECK_SAYS(load_bad, entry, line);
    }
}

static void bad_learners_are_refused(void)
{
    static const char *const values[] = {"", "1", "learning", "off:elo", "on:", "on:Elo", "on;elo"};
    static const char *const places[] = {"", "policy", "./policy"};
    check_refused("HAKMEM_LEARN", values, sizeof values / sizeof values[0],
                  "off, observe, on, or one of the last two, a colon and some of bigcache, sites, classes, elo, evolution with commas between; using the mode's");
    check_refused("HAKMEM_POLICY", places, sizeof places / sizeof places[0], "an absolute path, of what was learned; using none");
}

static void bad_checks_are_refused(void)
{
    static const char *const values[] = {"", "2", "-1", "11", "on", "Free", "free,", ",free", "free,,leaks", "free leaks", "1,free"};
    check_refused("HAKMEM_CHECK", values, sizeof values / sizeof values[0],
                  "0, 1, or some of free, redzone, poison, quarantine, leaks, stacks with commas between; using 0");
}

static void bad_traces_are_refused(void)
{
    static const char *const values[] = {"", "1", "ptr", "ptr:", "ptr:0x", "ptr:123", "ptr:0x12g", "ptr:0xA", "ptr:heap+", "ptr:heap+12",
                                         "ptr:0x11112222333344445", "class:", "class:0", "class:32769", "class:x", "class:8,",
                                         "class:8,file", "routes", "route:", "route:0", "route:1000001", "route:1K"};
    check_refused("HAKMEM_TRACE", values, sizeof values / sizeof values[0],
                  "route, route:N (1 to 1000000), ptr:0xADDRESS, ptr:heap+0xBYTES, class:BYTES (1 to 32768), or one of them, a comma and an absolute path; using none");
}

static void bad_reports_are_refused(void)
{
    static const char *const values[] = {"", "report", "./report", "stderr"};
    check_refused("HAKMEM_REPORT", values, sizeof values / sizeof values[0],
                  "an absolute path, for the reports of checks, guards and crashes; using stderr");
}

static void statistics_are_written_when_asked(void)
{
    load("HAKMEM_STATS=exit", "HAKMEM_LIVE=/run/x");
    CHECK(policy.stats == STATS_AT_EXIT && strcmp(path_of(PATH_LIVE), "/run/x") == 0);
    load("HAKMEM_STATS=USR2", NULL);
    CHECK(policy.stats == STATS_BY_SIGNAL && policy.stats_signal == SIGUSR2);
    load("HAKMEM_STATS=SIGHUP", NULL);
    CHECK(policy.stats == STATS_BY_SIGNAL && policy.stats_signal == SIGHUP);
    load("HAKMEM_STATS=/tmp/series", NULL);
    CHECK(policy.stats == STATS_SERIES && strcmp(path_of(PATH_STATS), "/tmp/series") == 0);
    policy.stats = STATS_NEVER;
}

static void bad_statistics_are_refused(void)
{
    static const char *const values[] = {"", "1", "stats.json", "Exit", "SIG", "KILL", "SEGV", "SIGUSR3"};
    static const char *const places[] = {"", "1", "run"};
    check_refused("HAKMEM_STATS", values, sizeof values / sizeof values[0],
                  "exit, a signal (HUP, USR1, USR2, WINCH, or with SIG before it), or an absolute path; using none");
    check_refused("HAKMEM_LIVE", places, sizeof places / sizeof places[0],
                  "an absolute path of a directory, for a page that tools may read; using none");
}

static void load_unknown(uintptr_t unused)
{
    (void)unused;
    load("HAKMEM_MOD=fast", "HAKMEM_=1");
}

static void bad_values_get_one_line(void)
{
    CHECK_SAYS(load_bad, "HAKMEM_MODE=turbo",
               "hakmem: warning: HAKMEM_MODE=turbo: legal values are minimal, fast, balanced, learning, research; using balanced\n");
    static const char *const bad[] = {
        "", "delay", "delay=", "delay=-1", "delay=1s", "delay=86400001", "delay=99999999999999999999", "delay= 1", "1000",
        "thread", "thread=1", "huge=of", "delay=1,", ",", "delay=1;thread=on", "off", "delay=5,huge=no",
    };
    check_refused("HAKMEM_PURGE", bad, sizeof bad / sizeof bad[0],
                  "delay=MS (0 to 86400000), thread=on|off, huge=auto|on|off, or several with commas between; using the "
                  "mode's");
}

static void bad_limits_get_one_line(void)
{
    static const char *const bad[] = {
        "", ":", "1M:", ":1M", "K", "1M:K", "x", "1x", "1KB", "1k", "-1", "+1", " 1", "1 ", "1M,2M", "1M:2M:3M", "0x10",
        "1.5G", "1MM", "2M:1M", "1M:1023K", "18446744073709551616", "16777216T", "99999999999999999999999", "1M\t",
    };
    check_refused("HAKMEM_LIMIT", bad, sizeof bad / sizeof bad[0],
                  "SOFT or SOFT:HARD, bytes or with K, M, G, T, 0 for none, HARD not below SOFT; using the control group's");
}

static void check_guard(const char *entry, size_t bytes, uint32_t slots)
{
    load(entry, NULL);
    CHECK(policy.guard_bytes == bytes);
    CHECK(policy.guard_slots == slots);
}

static void guards_are_bytes_and_slots(void)
{
    check_guard("HAKMEM_MODE=balanced", (size_t)256 << 20, 32);
    check_guard("HAKMEM_GUARD=1", 1, 32);
    check_guard("HAKMEM_GUARD=64M:1024", (size_t)64 << 20, 1024);
    check_guard("HAKMEM_GUARD=1T:1", (size_t)1 << 40, 1);
    check_guard("HAKMEM_GUARD=0", 0, 1);
    check_guard("HAKMEM_MODE=minimal", 0, 32);
    check_guard("HAKMEM_MODE=fast", 0, 32);
}

static void bad_guards_get_one_line(void)
{
    static const char *const bad[] = {"", ":", "1M:", "1M:0", "1M:1025", "1M:1K", "2T", "x", "-1", "1M:16:1", "1M,16"};
    check_refused("HAKMEM_GUARD", bad, sizeof bad / sizeof bad[0],
                  "BYTES or BYTES:SLOTS, bytes up to 1T, or with K, M, G, T, 0 for none, 1 to 1024 slots; using the mode's");
}

static void profiles_are_bytes_and_a_path(void)
{
    load("HAKMEM_PROFILE=512K,/tmp/%p,x", NULL);
    CHECK(policy.profile_bytes == 512 << 10 && strcmp(policy.profile_path, "/tmp/%p,x") == 0);
    load("HAKMEM_PROFILE=1", NULL);
    CHECK(policy.profile_bytes == 1 && policy.profile_path == NULL);
    load("HAKMEM_PROFILE=1T,/a", "HAKMEM_PROFILE=0");
    CHECK(policy.profile_bytes == 0 && policy.profile_path == NULL);
}

static void bad_profiles_get_one_line(void)
{
    static const char *const bad[] = {"", ",", ",/a", "1,", "1,a", "x", "-1", "2T", "1:/a", "1, /a"};
    check_refused("HAKMEM_PROFILE", bad, sizeof bad / sizeof bad[0],
                  "BYTES or BYTES,PATH, bytes up to 1T, or with K, M, G, T, 0 for none, an absolute path, %p in it for the process; "
                  "using 0");
}

static void unknown_names_get_one_line(void)
{
    CHECK_SAYS(load_unknown, 0,
               "hakmem: warning: HAKMEM_MOD=fast: no such option; the options are HAKMEM_MODE, HAKMEM_LEARN, HAKMEM_POLICY, HAKMEM_LIMIT, HAKMEM_PURGE, HAKMEM_GUARD, HAKMEM_PROFILE, HAKMEM_CRASH, HAKMEM_CHECK, HAKMEM_TRACE, HAKMEM_STATS, HAKMEM_LIVE, HAKMEM_REPORT\n"
               "hakmem: warning: HAKMEM_=1: no such option; the options are HAKMEM_MODE, HAKMEM_LEARN, HAKMEM_POLICY, HAKMEM_LIMIT, HAKMEM_PURGE, HAKMEM_GUARD, HAKMEM_PROFILE, HAKMEM_CRASH, HAKMEM_CHECK, HAKMEM_TRACE, HAKMEM_STATS, HAKMEM_LIVE, HAKMEM_REPORT\n");
}

static void secure_processes_ignore_all(void)
{
    struct policy before = policy;
    fake_os_set_secure(true);
    load("HAKMEM_MODE=fast", "HAKMEM_NONSENSE=1");
    load("HAKMEM_LIMIT=1M:2M", "HAKMEM_LIMIT=x");
    check_policy(before);
}

/* A child may have all the rights, and look like any other process. */
static void secure_processes_hand_nothing_on(void)
{
    char *environment[] = {"A=1", "HAKMEM_MODE=fast", "HAKMEM_NONSENSE=1", "HAKMEMS=1", "HAKMEM_REPORT=/x", NULL};
    fake_os_set_secure(true);
    options_load(environment);
    CHECK(strcmp(environment[0], "A=1") == 0 && strcmp(environment[1], "HAKMEMS=1") == 0 && environment[2] == NULL);
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
        UNIT_TEST(unknown_names_get_one_line), UNIT_TEST(secure_processes_ignore_all), UNIT_TEST(secure_processes_hand_nothing_on),
        UNIT_TEST(no_environment_is_fine),
        UNIT_TEST(limits_are_bytes_with_suffixes), UNIT_TEST(mode_does_not_undo_limits),
        UNIT_TEST(bad_limits_get_one_line),
        UNIT_TEST(guards_are_bytes_and_slots),
        UNIT_TEST(bad_guards_get_one_line),
        UNIT_TEST(profiles_are_bytes_and_a_path),
        UNIT_TEST(bad_profiles_get_one_line),
        UNIT_TEST(checks_are_a_list),
        UNIT_TEST(bad_checks_are_refused),
        UNIT_TEST(bad_reports_are_refused),
        UNIT_TEST(statistics_are_written_when_asked),
        UNIT_TEST(bad_statistics_are_refused),
        UNIT_TEST(traces_name_what_is_traced),
        UNIT_TEST(bad_traces_are_refused),
        UNIT_TEST(a_delay_is_pinned),
        UNIT_TEST(the_learner_is_the_modes_unless_it_is_said),
        UNIT_TEST(bad_learners_are_refused),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
