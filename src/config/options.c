#include "config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/fmt.h"
#include "config/policy.h"
#include "os/os.h"

enum { DELAY_MOST_MS = 24 * 60 * 60 * 1000, GUARD_SLOTS_MOST = 1024 };

#define GUARD_BYTES_MOST TIB

struct option {
    const char *name;
    const char *legal;   /* for the warning */
    const char *default_value;
    bool (*set)(const char *value); /* false: not a legal value */
};

/* A decimal number up to `most`, all of [text, end). */
static bool parse_number(const char *text, const char *end, size_t most, size_t *out)
{
    size_t value = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        size_t digit = (size_t)(*text - '0');
        if (value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool parse_delay(const char *text, const char *end, uint32_t *out)
{
    size_t ms;
    if (!parse_number(text, end, DELAY_MOST_MS, &ms))
        return false;
    *out = (uint32_t)ms;
    return true;
}

/* Digits and at most one of K, M, G, T, up to `end`. */
static bool parse_bytes(const char *text, const char *end, size_t *out)
{
    static const char suffixes[] = "KMGT";
    const char *suffix = end > text ? strchr(suffixes, end[-1]) : NULL;
    unsigned shift = suffix != NULL ? (unsigned)(suffix - suffixes + 1) * 10 : 0;
    if (!parse_number(text, suffix != NULL ? end - 1 : end, SIZE_MAX >> shift, out))
        return false;
    *out <<= shift;
    return true;
}

/* 0 is SIZE_MAX, no limit. */
static bool parse_limit(const char *text, const char *end, size_t *out)
{
    if (!parse_bytes(text, end, out))
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

static bool is_word(const char *value, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(value, word, length) == 0;
}

/* Is what comes before '=' this key? */
static bool is_key(const char *text, const char *value, const char *key)
{
    return is_word(text, (size_t)(value - text) - 1, key);
}

static bool parse_switch(const char *value, size_t length, bool *out)
{
    *out = is_word(value, length, "on");
    return *out || is_word(value, length, "off");
}

static bool parse_huge(const char *value, size_t length, enum huge_pages *out)
{
    static const char *const words[] = {[HUGE_AUTO] = "auto", [HUGE_ON] = "on", [HUGE_OFF] = "off"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (is_word(value, length, words[i])) {
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
        return parse_delay(value, value + length, &wanted->purge_ms);
    if (is_key(text, value, "thread"))
        return parse_switch(value, length, &wanted->purger);
    return is_key(text, value, "huge") && parse_huge(value, length, &wanted->huge);
}

/* Takes effect only as a whole. */
static bool set_purge(const char *text)
{
    struct policy wanted = policy;
    while (text != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL)
            return false;
        const char *value = equals + 1;
        const char *comma = strchr(value, ',');
        if (!set_one_of_purge(&wanted, text, value, comma != NULL ? (size_t)(comma - value) : strlen(value)))
            return false;
        text = comma != NULL ? comma + 1 : NULL;
    }
    policy = wanted;
    return true;
}

static bool set_guard(const char *value)
{
    const char *end = value + strlen(value);
    const char *colon = strchr(value, ':');
    size_t bytes;
    size_t slots = policy.guard_slots;
    if (!parse_bytes(value, colon != NULL ? colon : end, &bytes) || bytes > GUARD_BYTES_MOST)
        return false;
    if (colon != NULL && (!parse_number(colon + 1, end, GUARD_SLOTS_MOST, &slots) || slots == 0))
        return false;
    policy.guard_bytes = bytes;
    policy.guard_slots = (uint32_t)slots;
    return true;
}

static bool set_crash(const char *value)
{
    policy.crash_reports = strcmp(value, "1") == 0;
    return policy.crash_reports || strcmp(value, "0") == 0;
}

/* In the order in which they take effect: a mode first, so that the others refine it. */
static const struct option options[] = {
    {"HAKMEM_MODE", POLICY_MODES, "balanced", policy_set_mode},
    {"HAKMEM_LIMIT", "SOFT or SOFT:HARD, bytes or with K, M, G, T, 0 for none, HARD not below SOFT", "the control group's",
     set_limit},
    {"HAKMEM_PURGE", "delay=MS (0 to 86400000), thread=on|off, huge=auto|on|off, or several with commas between",
     "the mode's", set_purge},
    {"HAKMEM_GUARD", "BYTES or BYTES:SLOTS, bytes up to 1T, or with K, M, G, T, 0 for none, 1 to 1024 slots", "the mode's",
     set_guard},
    {"HAKMEM_CRASH", "0, 1", "0", set_crash},
};

/* Read by the launcher; legal here, without effect. */
static const char *const launcher_names[] = {"HAKMEM_DISABLE"};

/* The value, if `entry` is "NAME=VALUE", else NULL. */
static const char *value_of(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
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

static void apply(const struct option *option, char **environment)
{
    for (char **entry = environment; *entry != NULL; entry++) {
        const char *value = value_of(*entry, option->name);
        if (value != NULL && !option->set(value))
            warn("%s=%s: legal values are %s; using %s", option->name, value, option->legal,
                 option->default_value);
    }
}

static void warn_unknown(const char *entry)
{
    static const char prefix[] = "HAKMEM_";
    if (strncmp(entry, prefix, sizeof prefix - 1) != 0 || is_known(entry))
        return;
    char names[256];
    size_t length = 0;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        length += fmt_print(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", options[i].name);
    warn("%s: no such option; the options are %s", entry, names);
}

void options_load(char **environment)
{
    if (environment == NULL || os_is_secure())
        return;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        apply(&options[i], environment);
    for (char **entry = environment; *entry != NULL; entry++)
        warn_unknown(*entry);
}
