/* Comparing policies: memcmp would look at padding. */
#ifndef HAK_TEST_POLICIES_H
#define HAK_TEST_POLICIES_H

#include "config/policy.h"

static inline bool policies_equal(struct policy a, struct policy b)
{
    return a.magazine_bytes == b.magazine_bytes && a.thread_cache_bytes == b.thread_cache_bytes &&
           a.bigcache_bytes == b.bigcache_bytes && a.bigcache_ms == b.bigcache_ms && a.purge_ms == b.purge_ms &&
           a.huge == b.huge && a.purger == b.purger && a.heartbeat_bytes == b.heartbeat_bytes &&
           a.soft_limit == b.soft_limit && a.hard_limit == b.hard_limit && a.guard_bytes == b.guard_bytes &&
           a.guard_slots == b.guard_slots && a.profile_bytes == b.profile_bytes && a.profile_path == b.profile_path && a.crash_reports == b.crash_reports;
}

#endif
