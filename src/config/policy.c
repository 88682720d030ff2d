#include "config/policy.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/knobs.h"

#define EVERY_CLASS(value) {[0 ... SIZE_CLASSES - 1] = (value)}
#define EVERY_BIN(value) {[0 ... SIZE_BINS - 1] = (value)}

/* Servers are sold with about 4 GiB for each core, so that a second of one costs as much as 4096 MiB held for a second. */
enum { FAIR_PRICE_NS = 1000 * 1000 * 1000 / 4096 };

/* A mode's values, but for what differs. */
#define BALANCED                                                                                          \
    .magazine_bytes = EVERY_CLASS(64 * KIB), .batch_eighths = EVERY_CLASS(4), .thread_cache_bytes = 2 * MIB, \
    .bigcache_bytes = 64 * MIB, .bigcache_ms = EVERY_BIN(1000), .kept_most_bytes = TIB, .purge_ms = 1000,  \
    .purge_doublings = 3, .memory_price = FAIR_PRICE_NS, .heartbeat_bytes = 4 * MIB, .guard_bytes = 256 * MIB

/* What no mode changes. */
#define COMMON .purger = true, .guard_slots = 32, .learn_parts = LEARN_ALL

struct mode {
    const char *name;
    struct policy policy;
};

static const struct mode modes[] = {
    {"balanced", {BALANCED, COMMON}},
    {"minimal",
     {.magazine_bytes = EVERY_CLASS(4 * KIB),
      .batch_eighths = EVERY_CLASS(4),
      .thread_cache_bytes = 64 * KIB,
      .kept_most_bytes = TIB,
      .purge_doublings = 3,
      .memory_price = FAIR_PRICE_NS * 10,
      .heartbeat_bytes = 1 * MIB,
      COMMON}},
    {"fast",
     {.magazine_bytes = EVERY_CLASS(256 * KIB),
      .batch_eighths = EVERY_CLASS(4),
      .thread_cache_bytes = 16 * MIB,
      .bigcache_bytes = 512 * MIB,
      .bigcache_ms = EVERY_BIN(10000),
      .kept_most_bytes = TIB,
      .purge_ms = 10000,
      .purge_doublings = 3,
      .memory_price = FAIR_PRICE_NS / 10,
      .heartbeat_bytes = 16 * MIB,
      COMMON}},
    {"learning", {BALANCED, COMMON, .learn = LEARN_ON}},
    {"research", {BALANCED, COMMON, .learn = LEARN_ON}},
};

struct policy policy = {BALANCED, COMMON};

static const struct mode *mode = &modes[0];

static const struct mode *mode_named(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    return NULL;
}

bool policy_set_mode(const char *name)
{
    const struct mode *wanted = mode_named(name);
    if (wanted == NULL)
        return false;
    store_relaxed(&mode, wanted);
    for (enum knob knob = 0; knob < KNOBS; knob++)
        for (unsigned i = 0; i < knob_info[knob].count; i++)
            knob_set(knob, i, knob_of_mode(knob, i));
    policy.memory_price = wanted->policy.memory_price;
    policy.heartbeat_bytes = wanted->policy.heartbeat_bytes;
    policy.guard_bytes = wanted->policy.guard_bytes;
    policy.guard_slots = wanted->policy.guard_slots;
    policy.learn = wanted->policy.learn;
    return true;
}

const struct policy *policy_of_mode(void)
{
    return &load_relaxed(&mode)->policy;
}

const char *policy_mode_name(void)
{
    return load_relaxed(&mode)->name;
}
