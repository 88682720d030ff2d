/* Comparing policies: memcmp would look at padding. */
#ifndef HAK_TEST_POLICIES_H
#define HAK_TEST_POLICIES_H

#include <stddef.h>
#include <string.h>

#include "config/policy.h"

_Static_assert(sizeof(struct policy) - offsetof(struct policy, learn) == 112, "compare what has come");

static inline bool policies_equal(struct policy a, struct policy b)
{
    /* The knobs come first, and have no padding. */
    bool knobs = memcmp(&a, &b, offsetof(struct policy, learn)) == 0;
    bool learner = a.learn == b.learn && a.learn_parts == b.learn_parts && a.memory_price == b.memory_price &&
                   a.learn_is_pinned == b.learn_is_pinned && a.fit_bytes == b.fit_bytes;
    bool memory = a.huge == b.huge && a.purger == b.purger && a.heartbeat_bytes == b.heartbeat_bytes &&
                  a.soft_limit == b.soft_limit && a.hard_limit == b.hard_limit;
    bool checks = a.guard_bytes == b.guard_bytes && a.guard_slots == b.guard_slots && a.crash_reports == b.crash_reports &&
                  a.checks == b.checks && a.trace == b.trace && a.traced == b.traced;
    bool told = a.stats == b.stats && a.stats_signal == b.stats_signal && a.profile_bytes == b.profile_bytes &&
                a.profile_path == b.profile_path;
    return knobs && learner && memory && checks && told;
}

#endif
