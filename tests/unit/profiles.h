/* Profiles for tests. */
#ifndef HAK_TEST_PROFILES_H
#define HAK_TEST_PROFILES_H

#include <stdbool.h>
#include <stddef.h>

#include "arena/arena.h"
#include "base/chance.h"
#include "check.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/budget.h"
#include "heaps.h"
#include "large/large.h"
#include "observe/profile.h"
#include "observe/profile_memory.h"
#include "observe/profile_sites.h"

/* Starts a profile that this thread takes part in at once, and always in the same way. */
static inline void profile_begin(size_t rate)
{
    struct heap *heap = heap_own();
    CHECK(hak_profile_start(rate) == 0);
    heap->random = 77;
    budget_grant(heap);
}

static inline bool is_sampled(const void *p)
{
    const struct large *block = large_find(p);
    return block != NULL ? block->sample != NULL : arena_tag(p) == TAG_SAMPLED;
}

static inline const struct profile_sum *profile_live(const struct site *site)
{
    return &site->live;
}

static inline const struct profile_sum *profile_allocated(const struct site *site)
{
    return &site->allocated;
}

static inline const struct profile_sum *profile_peak(const struct site *site)
{
    return &site->peak;
}

/* What samples of one site stand for, as a reader of the file knows it. */
static inline double profile_scaled(const struct profile_sum *sum)
{
    if (sum->count == 0 || profile_totals.rate == 1)
        return (double)sum->bytes;
    double mean = (double)sum->bytes / (double)sum->count;
    return (double)sum->bytes / chance_within(mean / (double)profile_totals.rate);
}

static inline double profile_estimate(const struct profile_sum *(*what)(const struct site *site))
{
    double estimate = 0;
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        estimate += profile_scaled(what(&site));
    }
    return estimate;
}

#endif
