#include "config/policy.h"

#include <string.h>

#include "base/bits.h"

#define BALANCED                                                                                       \
    {                                                                                                  \
        .magazine_bytes = 64 << 10, .thread_cache_bytes = 2 << 20, .bigcache_bytes = 64 << 20,         \
        .bigcache_ms = 1000, .purge_ms = 1000, .purger = true,                                         \
        .heartbeat_bytes = 4 << 20, .guard_bytes = 256 << 20, .guard_slots = 32                        \
    }

struct mode {
    const char *name;
    struct policy policy;
};

static const struct mode modes[] = {
    {"balanced", BALANCED},
    {"minimal",
     {.magazine_bytes = 4 << 10,
      .thread_cache_bytes = 64 << 10,
      .bigcache_bytes = 0,
      .bigcache_ms = 0,
      .purge_ms = 0,
      .purger = true,
      .heartbeat_bytes = 1 << 20,
      .guard_slots = 32}},
    {"fast",
     {.magazine_bytes = 256 << 10,
      .thread_cache_bytes = 16 << 20,
      .bigcache_bytes = 512 << 20,
      .bigcache_ms = 10000,
      .purge_ms = 10000,
      .purger = true,
      .heartbeat_bytes = 16 << 20,
      .guard_slots = 32}},
};

struct policy policy = BALANCED;

bool policy_set_mode(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            policy = modes[i].policy;
            return true;
        }
    }
    return false;
}
