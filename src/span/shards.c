#include "span/shards.h"

#include "base/bits.h"

enum { PROCESSORS_OF_SHARD = 8 };

struct span_shard span_shards[SPAN_SHARDS_MOST] = {
    [0] = {.lock = LOCK_INITIALIZER(LOCK_SPAN)},
    [1 ... SPAN_SHARDS_MOST - 1] = {.lock = LOCK_INITIALIZER(LOCK_SPAN_SHARD)},
};

uint32_t span_spread_over;

void span_spread(size_t processors)
{
    size_t others = 0;
    if (processors > PROCESSORS_OF_SHARD)
        for (others = 2; others < SHARDS && others * PROCESSORS_OF_SHARD < processors; others *= 2)
            ;
    lock_take(&shards_pool()->lock);
    if (others > span_spread_over)
        store_relaxed(&span_spread_over, (uint32_t)others);
    lock_drop(&shards_pool()->lock);
}

struct span_shard *shards_lock_of(const struct superslab *s)
{
    for (;;) {
        struct span_shard *shard = shard_of(s);
        lock_take(&shard->lock);
        if (LIKELY(shard_of(s) == shard))
            return shard;
        lock_drop(&shard->lock);
    }
}

void shards_lock_pool_too(const struct span_shard *held)
{
    if (held != shards_pool())
        lock_take(&shards_pool()->lock);
}

void shards_unlock_pool_too(const struct span_shard *held)
{
    if (held != shards_pool())
        lock_drop(&shards_pool()->lock);
}

void shards_lock_two(struct span_shard *a, struct span_shard *b)
{
    struct span_shard *lower = a < b ? a : b;
    struct span_shard *higher = a < b ? b : a;
    if (lower == shards_pool()) {
        lock_take(&higher->lock);
        lock_take(&lower->lock);
    } else {
        lock_take(&lower->lock);
        lock_take_sibling(&higher->lock);
    }
}

/* With the pool's lock no shards are added. */
void span_lock_all(void)
{
    for (;;) {
        uint32_t others = load_relaxed(&span_spread_over);
        shards_lock(shards_pool() + 1, sizeof span_shards[0], others);
        lock_take(&shards_pool()->lock);
        if (LIKELY(span_spread_over == others))
            return;
        lock_drop(&shards_pool()->lock);
        shards_unlock(shards_pool() + 1, sizeof span_shards[0], others);
    }
}

void span_unlock_all(void)
{
    uint32_t others = span_spread_over;
    lock_drop(&shards_pool()->lock);
    shards_unlock(shards_pool() + 1, sizeof span_shards[0], others);
}

bool span_lock_is_mine(void)
{
    return shards_lock_is_mine(span_shards, sizeof span_shards[0], shards_count());
}
