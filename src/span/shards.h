/*
 * The span layer's superslabs, in shards: each has a lock, and what that guards. Internal to the span layer, but for the sums.
 *
 * Each superslab belongs to one shard. The first is the pool, to which belong all that are wholly free or were never used, and
 * runs that are longer than a superslab; whatever concerns neighbouring superslabs, or the range, is guarded by its lock. In a process
 * that is small, has few threads, or runs on few processors it is the only one, and serves all. Else threads are spread over
 * the others, and what a thread finds elsewhere moves to its own.
 *
 * Locks: of two shards, the lower first, and the pool's last. A superslab changes its shard under the locks of both.
 */
#ifndef HAK_SPAN_SHARDS_H
#define HAK_SPAN_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/shard.h"
#include "span/decay.h"
#include "span/span.h"
#include "span/superslab.h"

enum { SPAN_SHARDS_MOST = 1 + SHARDS };

struct span_shard {
    struct lock lock;
    uint32_t fits[ROOM_KINDS]; /* longer runs than that will not be found: a hint for the others, who read it without the lock */
    size_t used_bytes;         /* in runs */
    size_t dirty_units;        /* free units that may hold pages */
    size_t charged_bytes;      /* in sum since the start (limit.h) */
    uint64_t purged_bytes;     /* given back, in sum */
    uint64_t served[SPAN_STAGES];
    struct decay decay;
    struct list dirty_queue; /* superslabs into which dirty units were freed since they were last purged, the longest ago first */
    struct list in_purge;    /* superslabs whose free units some thread is giving back now, without the lock */
    bits128 rooms;           /* bit n - 1: there are committed superslabs with n free units */
    struct list by_room[SUPERSLAB_UNITS]; /* [SUPERSLAB_UNITS - n]: these; the fullest last, for small processes touch the beginning only */
} ALIGNED(SHARD_ALIGN);

extern HIDDEN struct span_shard span_shards[SPAN_SHARDS_MOST];

/* How many there are beside the pool: 0, or a power of two. Grows only. */
extern HIDDEN uint32_t span_spread_over;

ALWAYS_INLINE struct span_shard *shards_pool(void)
{
    return &span_shards[0];
}

/* The calling thread's. */
ALWAYS_INLINE struct span_shard *shards_own(void)
{
    uint32_t others = load_relaxed(&span_spread_over);
    return &span_shards[LIKELY(others == 0) ? 0 : 1 + shard_of_thread() % others];
}

/* Those in use, the pool too. */
ALWAYS_INLINE unsigned shards_count(void)
{
    return 1 + load_relaxed(&span_spread_over);
}

/* The superslab's: a moment old without the lock. */
ALWAYS_INLINE struct span_shard *shard_of(const struct superslab *s)
{
    return &span_shards[load_relaxed(&s->shard)];
}

/* Takes the lock of the shard to which the superslab belongs. */
struct span_shard *shards_lock_of(const struct superslab *s);

/* The pool's lock for who holds another, or that one already. */
void shards_lock_pool_too(const struct span_shard *held);
void shards_unlock_pool_too(const struct span_shard *held);

/* Those of two different shards. */
void shards_lock_two(struct span_shard *a, struct span_shard *b);

#endif
