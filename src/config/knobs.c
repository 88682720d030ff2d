#include "config/knobs.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/policy.h"
#include "config/size_class.h"

#define OF(field) offsetof(struct policy, field)

/* The limits are those of good sense, not of correctness: no value makes an operation wrong. */
const struct knob_info knob_info[KNOBS] = {
    [KNOB_MAGAZINE_BYTES] = {"magazine_bytes", "bytes", "most that one magazine of the class may hold", SIZE_CLASSES,
                             OF(magazine_bytes), 64, MIB},
    [KNOB_BATCH_EIGHTHS] = {"batch_eighths", "eighths of a magazine", "what a refill fills and a flush gives back", SIZE_CLASSES,
                            OF(batch_eighths), 1, 8},
    [KNOB_THREAD_CACHE_BYTES] = {"thread_cache_bytes", "bytes", "most that all magazines of a thread may hold", 1,
                                 OF(thread_cache_bytes), 64 * KIB, 256 * MIB},
    [KNOB_BIGCACHE_BYTES] = {"bigcache_bytes", "bytes", "most that freed large blocks may hold", 1, OF(bigcache_bytes), 0, 64 * GIB},
    [KNOB_BIGCACHE_MS] = {"bigcache_ms", "ms", "how long a freed large block of the size bin is kept", SIZE_BINS, OF(bigcache_ms), 0,
                          60000},
    [KNOB_KEPT_MOST_BYTES] = {"kept_most_bytes", "bytes", "freed blocks that are larger are not kept", 1, OF(kept_most_bytes), 0, TIB},
    [KNOB_PURGE_MS] = {"purge_ms", "ms", "how long free units keep their pages", 1, OF(purge_ms), 0, 60000},
    [KNOB_PURGE_DOUBLINGS] = {"purge_doublings", "doublings", "how often that time may double while pages are taken again soon", 1,
                              OF(purge_doublings), 0, 6},
    [KNOB_HUGE_FILL] = {"huge_fill", "percent", "so much of 2 MiB that are all in use is in memory before they become a huge page", 1,
                        OF(huge_fill), 50, 100},
};

static bool pinned[KNOBS];

uint64_t knob_get(enum knob knob, unsigned index)
{
    return load_relaxed(knob_in(&policy, knob, index));
}

uint64_t knob_of_mode(enum knob knob, unsigned index)
{
    return *knob_in(policy_of_mode(), knob, index);
}

void knob_set(enum knob knob, unsigned index, uint64_t value)
{
    const struct knob_info *info = &knob_info[knob];
    if (!knob_is_pinned(knob))
        store_relaxed((size_t *)knob_in(&policy, knob, index), clamp_size(value, info->least, info->most));
}

void knob_pin(enum knob knob)
{
    store_relaxed(&pinned[knob], true);
}

bool knob_is_pinned(enum knob knob)
{
    return load_relaxed(&pinned[knob]);
}
