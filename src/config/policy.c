#include "config/policy.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/knobs.h"
#include "config/values.h"

#define EVERY_CLASS(value) {[0 ... SIZE_CLASSES - 1] = (value)}
#define EVERY_BIN(value) {[0 ... SIZE_BINS - 1] = (value)}

/* Servers are sold with about 4 GiB for each core, so that a second of one costs as much as 4096 MiB held for a second. */
enum { FAIR_PRICE_NS = 1000 * 1000 * 1000 / 4096 };

/* Less would not win what the code and the tables for it take. */
#define FIT_BYTES (16 * MIB)

/* A mode's values, but for what differs. */
#define BALANCED                                                                                          \
    .magazine_bytes = EVERY_CLASS(64 * KIB), .batch_eighths = EVERY_CLASS(4), .thread_cache_bytes = 2 * MIB, \
    .bigcache_bytes = 64 * MIB, .bigcache_ms = EVERY_BIN(1000), .kept_most_bytes = TIB, .purge_ms = 1000,  \
    .purge_doublings = 3, .huge_fill = 94, .memory_price = FAIR_PRICE_NS, .heartbeat_bytes = 4 * MIB,      \
    .guard_bytes = 256 * MIB, .fit_bytes = FIT_BYTES

/* What no mode changes. */
#define COMMON .purger = true, .guard_slots = 32, .learn_parts = LEARN_ALL

static const struct {
    char name[12]; /* here, not elsewhere: a pointer would have the loader write to the whole table at each start */
    struct policy policy;
} modes[MODES] = {
    [MODE_MINIMAL] = {"minimal",
                      {.magazine_bytes = EVERY_CLASS(4 * KIB),
                       .batch_eighths = EVERY_CLASS(4),
                       .thread_cache_bytes = 64 * KIB,
                       .kept_most_bytes = TIB,
                       .purge_doublings = 3,
                       .huge_fill = 100,
                       .memory_price = FAIR_PRICE_NS * 10,
                       .heartbeat_bytes = 1 * MIB,
                       .fit_bytes = FIT_BYTES,
                       COMMON}},
    [MODE_FAST] = {"fast",
                   {.magazine_bytes = EVERY_CLASS(256 * KIB),
                    .batch_eighths = EVERY_CLASS(4),
                    .thread_cache_bytes = 16 * MIB,
                    .bigcache_bytes = 512 * MIB,
                    .bigcache_ms = EVERY_BIN(10000),
                    .kept_most_bytes = TIB,
                    .purge_ms = 10000,
                    .purge_doublings = 3,
                    .huge_fill = 75,
                    .memory_price = FAIR_PRICE_NS / 10,
                    .heartbeat_bytes = 16 * MIB,
                    .fit_bytes = SIZE_MAX,
                    COMMON}},
    [MODE_BALANCED] = {"balanced", {BALANCED, COMMON}},
    [MODE_LEARNING] = {"learning", {BALANCED, COMMON, .learn = LEARN_ON}},
    [MODE_RESEARCH] = {"research",
                       {BALANCED, COMMON, .learn = LEARN_ON, .trace = TRACE_ROUTE, .traced = TRACE_ROUTES_USUAL}},
};

struct policy policy = {BALANCED, COMMON};
uint32_t policy_mode = MODE_BALANCED;
uint32_t policy_switches;

/* MODES: there is none. */
static uint32_t mode_named(const char *name)
{
    uint32_t found = 0;
    while (found < MODES && strcmp(modes[found].name, name) != 0)
        found++;
    return found;
}

/* Two threads may do this at once: whoever ends last has begun with the last mode. */
void policy_restore(void)
{
    uint32_t wanted;
    do {
        wanted = __atomic_load_n(&policy_mode, __ATOMIC_SEQ_CST);
        const struct policy *of = &modes[wanted].policy;
        for (enum knob knob = 0; knob < KNOBS; knob++)
            for (unsigned i = 0; i < knob_info[knob].count; i++)
                knob_set(knob, i, *knob_in(of, knob, i));
        store_relaxed(&policy.memory_price, of->memory_price);
        store_relaxed(&policy.fit_bytes, of->fit_bytes);
        /* Guarded samples are taken at heartbeats: they must not become rarer than asked for. */
        size_t sampled = policy.guard_bytes > 0 ? policy.guard_bytes : SIZE_MAX;
        store_relaxed(&policy.heartbeat_bytes, min_size(of->heartbeat_bytes, sampled));
        if (!policy.learn_is_pinned)
            store_relaxed(&policy.learn, of->learn);
    } while (wanted != __atomic_load_n(&policy_mode, __ATOMIC_SEQ_CST));
}

bool policy_set_mode(const char *name)
{
    uint32_t wanted = mode_named(name);
    if (wanted == MODES)
        return false;
    const struct policy *of = &modes[wanted].policy;
    policy.guard_bytes = of->guard_bytes;
    policy.guard_slots = of->guard_slots;
    policy.trace = of->trace;
    policy.traced = of->traced;
    return policy_switch_mode(name);
}

bool policy_switch_mode(const char *name)
{
    uint32_t wanted = mode_named(name);
    if (wanted == MODES)
        return false;
    __atomic_store_n(&policy_mode, wanted, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_add(&policy_switches, 1u, __ATOMIC_RELEASE);
    policy_restore();
    return true;
}

static bool parse_part(const char *word, size_t length, unsigned *parts)
{
    static const char words[][10] = {"bigcache", "sites", "classes", "elo", "evolution"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (value_is(word, length, words[i])) {
            *parts |= 1u << i;
            return true;
        }
    }
    return false;
}

static bool parse_parts(const char *word, unsigned *parts)
{
    *parts = 0;
    while (word != NULL) {
        const char *comma = strchr(word, ',');
        if (!parse_part(word, comma != NULL ? (size_t)(comma - word) : strlen(word), parts))
            return false;
        word = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

static const char learn_words[][8] = {[LEARN_OFF] = "off", [LEARN_OBSERVE] = "observe", [LEARN_ON] = "on"};

const char *policy_learn_name(void)
{
    return learn_words[load_relaxed(&policy.learn)];
}

bool policy_set_learn(const char *value)
{
    const char *colon = strchr(value, ':');
    size_t length = colon != NULL ? (size_t)(colon - value) : strlen(value);
    unsigned parts = LEARN_ALL;
    for (unsigned i = 0; i < sizeof learn_words / sizeof learn_words[0]; i++) {
        if (!value_is(value, length, learn_words[i]))
            continue;
        if (colon != NULL && (i == LEARN_OFF || !parse_parts(colon + 1, &parts)))
            return false;
        policy.learn = (enum learn)i;
        policy.learn_parts = parts;
        policy.learn_is_pinned = true;
        return true;
    }
    return false;
}

const struct policy *policy_of_mode(void)
{
    return &modes[load_relaxed(&policy_mode)].policy;
}

const char *policy_mode_name(void)
{
    return modes[load_relaxed(&policy_mode)].name;
}
