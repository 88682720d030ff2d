/* The BigCache: freed large blocks, kept with their pages for the next request of about their size, within
 * a budget of bytes and an age. Any thread; takes locks of its own, one at a time. */
#ifndef HAK_LARGE_BIGCACHE_H
#define HAK_LARGE_BIGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/shard.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "large/large.h"
#include "large/site.h"

/* Is a freed block to be kept? Not if policy is against it, for its size or its site. */
ALWAYS_INLINE bool bigcache_wants(const struct large *block)
{
    size_t bytes = block->units << UNIT_SHIFT;
    return block->patience != PATIENCE_NONE && bytes <= load_relaxed(&policy.bigcache_bytes)
           && bytes <= load_relaxed(&policy.kept_most_bytes);
}

/* Keeps a block (tagged TAG_LARGE_KEPT). Returns whether the cache is over its budget now. */
bool bigcache_put(struct large *block);

/* A kept block of at least `units` and at most a quarter more, the latest that this thread has freed, or one of another's;
 * in the hardened library one that has rested. If there is a site, rather one of that. NULL if there is none. */
struct large *bigcache_get(size_t units, uint32_t site);

/* Takes the oldest block out if the cache is over its budget, or the block was freed before `before_ms`;
 * NULL otherwise. The caller gives its units back. */
struct large *bigcache_evict(uint64_t before_ms);

/* Moved blocks of up to so much each, while all that are kept are no more than so much, are not given back for requests that are shorter. */
#define BIGCACHE_STAYS_MOST (4 * MIB)
#define BIGCACHE_STAYING_MOST (8 * MIB)

/* The oldest, for a request of so many units; NULL too if that is a longer one which stays (above): its pages would serve nobody else.
 * `all_stay`: or any longer one. */
struct large *bigcache_evict_for(size_t units, bool all_stay);

/* Takes those out that were kept for as long as policy says for their sizes and sites, and releases them, with no lock held; of each shard
 * only so many as go back in a part of a millisecond. */
void bigcache_evict_old(uint64_t now_ms, void (*release)(struct large *block));

/* Bytes of all kept blocks; a moment old. */
size_t bigcache_bytes(void);

/* For how long policy lets a block be kept at most. */
uint64_t bigcache_longest_ms(void);

/* A lease is for how long a block is kept: what policy says of its size bin, times 2^patience. */
enum { LEASES = SIZE_BINS * (PATIENCE_MOST + 1) };

/* Threads keep what they free in their own shards, and look there first. */
struct bigcache_shard {
    struct lock lock;
    struct large *latest; /* in none of the lists: many programs request at once as much again */
    size_t bytes;
    uint64_t oldest_ms;   /* when the oldest in the lists was freed, or the latest, if they are empty */
    uint64_t served;      /* requests, since the start */
    uint32_t put;         /* blocks, since the start; modulo 2^32 */
    uint64_t random;      /* for how long the hardened library's rest; 0: not begun */
    uint64_t occupied;    /* bit i: by_age[i] is not empty */
    struct list by_age[LEASES]; /* newest first */
} ALIGNED(SHARD_ALIGN);

extern HIDDEN struct bigcache_shard bigcache_shards[SHARDS];

/* For fork: all its locks, which are neighbours in the order. */
void bigcache_lock_all(void);
void bigcache_unlock_all(void);
bool bigcache_lock_is_mine(void);

#endif
