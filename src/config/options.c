#include "config/options.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "config/knobs.h"
#include "config/paths.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "config/values.h"
#include "os/os.h"

enum { DELAY_MOST_MS = 24 * 60 * 60 * 1000, GUARD_SLOTS_MOST = 1024, ROUTES_MOST = 1000000 };

#define GUARD_BYTES_MOST TIB
#define PROFILE_BYTES_MOST TIB

struct option {
    char name[16]; /* here, and below, characters: pointers would be relocations in each process */
    bool (*set)(const char *value); /* false: not a legal value */
};

/* What is said of an option that has none. */
struct meaning {
    char default_value[20];
    char legal[172];
};

/* 0 is SIZE_MAX, no limit. */
static bool parse_limit(const char *text, const char *end, size_t *out)
{
    if (!value_bytes(text, end, out))
        return false;
    if (*out == 0)
        *out = SIZE_MAX;
    return true;
}

static bool set_limit(const char *value)
{
    const char *end = value + strlen(value);
    const char *colon = strchr(value, ':');
    size_t soft;
    size_t hard = SIZE_MAX;
    if (!parse_limit(value, colon != NULL ? colon : end, &soft))
        return false;
    if (colon != NULL && !parse_limit(colon + 1, end, &hard))
        return false;
    if (hard < soft && soft != SIZE_MAX)
        return false;
    policy.soft_limit = soft;
    policy.hard_limit = hard;
    return true;
}

/* Is what comes before '=' this key? */
static bool is_key(const char *text, const char *value, const char *key)
{
    return value_is(text, (size_t)(value - text) - 1, key);
}

static bool parse_switch(const char *value, size_t length, bool *out)
{
    *out = value_is(value, length, "on");
    return *out || value_is(value, length, "off");
}

static bool parse_huge(const char *value, size_t length, enum huge_pages *out)
{
    static const char words[][5] = {[HUGE_AUTO] = "auto", [HUGE_ON] = "on", [HUGE_OFF] = "off"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (value_is(value, length, words[i])) {
            *out = (enum huge_pages)i;
            return true;
        }
    }
    return false;
}

/* One "key=value" at the start of `text`, `length` bytes of value. */
static bool set_one_of_purge(struct policy *wanted, const char *text, const char *value, size_t length)
{
    if (is_key(text, value, "delay"))
        return value_number(value, value + length, DELAY_MOST_MS, &wanted->purge_ms);
    if (is_key(text, value, "thread"))
        return parse_switch(value, length, &wanted->purger);
    return is_key(text, value, "huge") && parse_huge(value, length, &wanted->huge);
}

/* Takes effect only as a whole. */
static bool set_purge(const char *text)
{
    struct policy wanted = policy;
    bool sets_delay = false;
    while (text != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL)
            return false;
        const char *value = equals + 1;
        const char *comma = strchr(value, ',');
        if (!set_one_of_purge(&wanted, text, value, comma != NULL ? (size_t)(comma - value) : strlen(value)))
            return false;
        sets_delay |= is_key(text, value, "delay");
        text = comma != NULL ? comma + 1 : NULL;
    }
    policy = wanted;
    if (sets_delay)
        knob_pin(KNOB_PURGE_MS);
    return true;
}

static bool set_guard(const char *value)
{
    const char *end = value + strlen(value);
    const char *colon = strchr(value, ':');
    size_t bytes;
    size_t slots = policy.guard_slots;
    if (!value_bytes(value, colon != NULL ? colon : end, &bytes) || bytes > GUARD_BYTES_MOST)
        return false;
    if (colon != NULL && (!value_number(colon + 1, end, GUARD_SLOTS_MOST, &slots) || slots == 0))
        return false;
    policy.guard_bytes = bytes;
    policy.guard_slots = (uint32_t)slots;
    return true;
}

static bool set_profile(const char *value)
{
    const char *comma = strchr(value, ',');
    size_t bytes;
    if (!value_bytes(value, comma != NULL ? comma : value + strlen(value), &bytes) || bytes > PROFILE_BYTES_MOST)
        return false;
    if (comma != NULL && !path_set(PATH_PROFILE, comma + 1))
        return false;
    policy.profile_path = comma != NULL ? path_of(PATH_PROFILE) : NULL;
    policy.profile_bytes = bytes;
    return true;
}

static bool set_crash(const char *value)
{
    policy.crash_reports = strcmp(value, "1") == 0;
    return policy.crash_reports || strcmp(value, "0") == 0;
}

static bool parse_check(const char *word, size_t length, unsigned *checks)
{
    static const char words[][11] = {"free", "redzone", "poison", "quarantine", "leaks", "stacks"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (value_is(word, length, words[i])) {
            *checks |= 1u << i;
            return true;
        }
    }
    return false;
}

/* Whatever is looked at, each free is. */
static bool set_check(const char *value)
{
    unsigned checks = CHECK_FREE;
    bool is_list = strcmp(value, "0") != 0 && strcmp(value, "1") != 0;
    for (const char *word = is_list ? value : NULL; word != NULL;) {
        const char *comma = strchr(word, ',');
        if (!parse_check(word, comma != NULL ? (size_t)(comma - word) : strlen(word), &checks))
            return false;
        word = comma != NULL ? comma + 1 : NULL;
    }
    policy.checks = is_list ? checks : value[0] == '1' ? (unsigned)CHECK_ALL : 0;
    return true;
}

static bool parse_traced(const char *value, const char *end, struct policy *wanted)
{
    static const struct {
        const char *prefix;
        enum trace trace;
    } kinds[] = {{"ptr:heap+", TRACE_OFFSET}, {"ptr:", TRACE_ADDRESS}, {"class:", TRACE_CLASS}};
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].prefix);
        if (strncmp(value, kinds[i].prefix, length) != 0)
            continue;
        wanted->trace = kinds[i].trace;
        if (wanted->trace == TRACE_CLASS)
            return value_number(value + length, end, SMALL_MAX, &wanted->traced) && wanted->traced > 0;
        bool is_address = value_hex(value + length, end, &wanted->traced);
        wanted->traced = ~wanted->traced;
        return is_address;
    }
    return false;
}

static bool parse_route(const char *value, const char *end, struct policy *wanted)
{
    static const char word[] = "route";
    size_t length = sizeof word - 1;
    if (strncmp(value, word, length) != 0)
        return false;
    wanted->trace = TRACE_ROUTE;
    wanted->traced = TRACE_ROUTES_USUAL;
    if (value + length == end)
        return true;
    return value[length] == ':' && value_number(value + length + 1, end, ROUTES_MOST, &wanted->traced) && wanted->traced > 0;
}

/* Blocks are seen in check mode only: the least of it, unless more is asked for. */
static bool set_trace(const char *value)
{
    struct policy wanted = policy;
    const char *comma = strchr(value, ',');
    const char *end = comma != NULL ? comma : value + strlen(value);
    bool of_routes = parse_route(value, end, &wanted);
    if ((!of_routes && !parse_traced(value, end, &wanted)) || (comma != NULL && !fail_report_to(comma + 1)))
        return false;
    if (!of_routes)
        wanted.checks |= CHECK_FREE;
    policy = wanted;
    return true;
}

static int signal_named(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"WINCH", SIGWINCH}};
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(name, signals[i].name) == 0)
            return signals[i].number;
    return 0;
}

static bool set_stats(const char *value)
{
    int number = signal_named(value);
    if (strcmp(value, "exit") == 0) {
        policy.stats = STATS_AT_EXIT;
    } else if (number != 0) {
        policy.stats = STATS_BY_SIGNAL;
        policy.stats_signal = number;
    } else {
        if (!path_set(PATH_STATS, value))
            return false;
        policy.stats = STATS_SERIES;
    }
    return true;
}

static bool set_live(const char *value)
{
    return path_set(PATH_LIVE, value);
}

static bool set_policy_file(const char *value)
{
    return path_set(PATH_POLICY, value);
}

/* In the order in which they take effect: a mode first, so that the others refine it. */
#define OPTIONS(X)                                                                                                                \
    X("HAKMEM_MODE", policy_set_mode, "balanced", POLICY_MODES)                                                                   \
    X("HAKMEM_LEARN", policy_set_learn, "the mode's", POLICY_LEARN)                                                               \
    X("HAKMEM_POLICY", set_policy_file, "none", "an absolute path, of what was learned")                                          \
    X("HAKMEM_LIMIT", set_limit, "the control group's",                                                                           \
      "SOFT or SOFT:HARD, bytes or with K, M, G, T, 0 for none, HARD not below SOFT")                                             \
    X("HAKMEM_PURGE", set_purge, "the mode's",                                                                                    \
      "delay=MS (0 to 86400000), thread=on|off, huge=auto|on|off, or several with commas between")                                \
    X("HAKMEM_GUARD", set_guard, "the mode's",                                                                                    \
      "BYTES or BYTES:SLOTS, bytes up to 1T, or with K, M, G, T, 0 for none, 1 to 1024 slots")                                    \
    X("HAKMEM_PROFILE", set_profile, "0",                                                                                         \
      "BYTES or BYTES,PATH, bytes up to 1T, or with K, M, G, T, 0 for none, an absolute path, %p in it for the process")          \
    X("HAKMEM_CRASH", set_crash, "0", "0, 1")                                                                                     \
    X("HAKMEM_CHECK", set_check, "0", "0, 1, or some of free, redzone, poison, quarantine, leaks, stacks with commas between")    \
    X("HAKMEM_TRACE", set_trace, "none",                                                                                          \
      "route, route:N (1 to 1000000), ptr:0xADDRESS, ptr:heap+0xBYTES, class:BYTES (1 to 32768), or one of them, a comma and an " \
      "absolute path")                                                                                                            \
    X("HAKMEM_STATS", set_stats, "none", "exit, a signal (HUP, USR1, USR2, WINCH, or with SIG before it), or an absolute path")   \
    X("HAKMEM_LIVE", set_live, "none", "an absolute path of a directory, for a page that tools may read")                         \
    X("HAKMEM_REPORT", fail_report_to, "stderr", "an absolute path, for the reports of checks, guards and crashes")

#define OPTION(option, setter, value, values) {option, setter},
#define MEANING(option, setter, value, values) {value, values},
static const struct option options[] = {OPTIONS(OPTION)};
static const struct meaning meanings[] = {OPTIONS(MEANING)};

/* An array that is full has no end. */
#define FITS(option, setter, value, values)                                                                          \
    &&sizeof(option) <= sizeof options[0].name && sizeof(value) <= sizeof meanings[0].default_value                    \
        && sizeof(values) <= sizeof meanings[0].legal
_Static_assert(true OPTIONS(FITS), "a text is too long");

/* Read by the launcher; legal here, without effect. */
static const char launcher_names[][15] = {"HAKMEM_DISABLE"};

/* The value, if `entry` is "NAME=VALUE", else NULL. */
static const char *value_of(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

/* Without libc's help: in most processes it is all that is asked, and would be looked up by the loader. */
ALWAYS_INLINE bool is_ours(const char *entry)
{
    const char *prefix = "HAKMEM_";
    for (; *prefix != '\0' && *prefix == *entry; entry++)
        prefix++;
    return *prefix == '\0';
}

static bool is_known(const char *entry)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (value_of(entry, options[i].name) != NULL)
            return true;
    for (size_t i = 0; i < sizeof launcher_names / sizeof launcher_names[0]; i++)
        if (value_of(entry, launcher_names[i]) != NULL)
            return true;
    return false;
}

static void apply(const struct option *option, const struct meaning *meaning, char **environment)
{
    for (char **entry = environment; *entry != NULL; entry++) {
        const char *value = value_of(*entry, option->name);
        if (value != NULL && !option->set(value))
            warn("%s=%s: legal values are %s; using %s", option->name, value, meaning->legal,
                 meaning->default_value);
    }
}

static void warn_unknown(const char *entry)
{
    if (!is_ours(entry) || is_known(entry))
        return;
    char names[256];
    size_t length = 0;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        length += fmt_print(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", options[i].name);
    warn("%s: no such option; the options are %s", entry, names);
}

static COLD void apply_all(char **environment)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        apply(&options[i], &meanings[i], environment);
    for (char **entry = environment; *entry != NULL; entry++)
        warn_unknown(*entry);
}

/* Not for its children either, as the loader has it with its own variables: to them it may have given all its rights. */
static COLD void forget_ours(char **environment)
{
    char **to = environment;
    for (char **from = environment; *from != NULL; from++)
        if (!is_ours(*from))
            *to++ = *from;
    *to = NULL;
}

void options_load(char **environment)
{
    if (environment == NULL)
        return;
    if (os_is_secure()) {
        forget_ours(environment);
        return;
    }
    char **first = environment;
    while (*first != NULL && !is_ours(*first))
        first++;
    if (*first != NULL)
        apply_all(first);
}
