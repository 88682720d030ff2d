#include "large/bigcache.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/shard.h"
#include "config/policy.h"
#include "config/size_class.h"

/* Bins are eighths of a doubling of units. */
enum { STEPS_SHIFT = 3, BINS = 48 << STEPS_SHIFT };

/* The first and the last bin of a search hold blocks that do not fit, too. */
enum { LOOKS_MOST = 16 };

#define NEVER UINT64_MAX

struct bigcache_shard bigcache_shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = LOCK_INITIALIZER(LOCK_BIGCACHE)}};

static struct list bins[SHARDS][BINS];

/* Bit i: shard i keeps something. */
static uint32_t kept_in;

static struct list *bin_in(const struct bigcache_shard *shard, unsigned bin)
{
    return &bins[shard - bigcache_shards][bin];
}

static unsigned bin_of(size_t units)
{
    if (units < 1 << STEPS_SHIFT)
        return (unsigned)units;
    unsigned log = log2_floor(units);
    unsigned step = (unsigned)(units >> (log - STEPS_SHIFT)) & ((1 << STEPS_SHIFT) - 1);
    return ((log - STEPS_SHIFT + 1) << STEPS_SHIFT) + step;
}

/* After a change of `change` bytes. Others read both without the lock. */
static void note(struct bigcache_shard *shard, ptrdiff_t change)
{
    const struct list_node *last = shard->by_age.last;
    store_relaxed(&shard->oldest_ms, last != NULL ? LIST_ENTRY(last, struct large, age)->freed_ms : NEVER);
    uint32_t bit = 1u << (shard - bigcache_shards);
    if (shard->bytes == 0)
        add_relaxed(&kept_in, bit);
    store_relaxed(&shard->bytes, shard->bytes + (size_t)change);
    if (shard->bytes == 0)
        sub_relaxed(&kept_in, bit);
}

static void take_out(struct bigcache_shard *shard, struct large *block)
{
    list_remove(bin_in(shard, bin_of(block->units)), &block->link);
    list_remove(&shard->by_age, &block->age);
    note(shard, -(ptrdiff_t)(block->units << UNIT_SHIFT));
}

bool bigcache_put(struct large *block)
{
    size_t size = block->units << UNIT_SHIFT;
    struct bigcache_shard *shard = &bigcache_shards[shard_of_thread()];
    if (size > load_relaxed(&policy.bigcache_bytes))
        return false;
    block->freed_ms = clock_now_ms();
    lock_take(&shard->lock);
    list_push_front(bin_in(shard, bin_of(block->units)), &block->link);
    list_push_front(&shard->by_age, &block->age);
    note(shard, (ptrdiff_t)size);
    lock_drop(&shard->lock);
    return true;
}

static struct large *find_in(const struct list *bin, size_t least, size_t most)
{
    struct list_node *node = bin->first;
    for (int looks = 0; node != NULL && looks < LOOKS_MOST; node = node->next, looks++) {
        struct large *block = LIST_ENTRY(node, struct large, link);
        if (block->units >= least && block->units <= most)
            return block;
    }
    return NULL;
}

static struct large *get_from(struct bigcache_shard *shard, size_t units)
{
    struct large *found = NULL;
    size_t most = units + units / 4;
    if (load_relaxed(&shard->bytes) < units << UNIT_SHIFT)
        return NULL;
    lock_take(&shard->lock);
    for (unsigned bin = bin_of(units); bin <= bin_of(most) && found == NULL; bin++)
        found = find_in(bin_in(shard, bin), units, most);
    if (found != NULL) {
        take_out(shard, found);
        store_relaxed(&shard->served, shard->served + 1);
    }
    lock_drop(&shard->lock);
    return found;
}

struct large *bigcache_get(size_t units)
{
    unsigned own = shard_of_thread();
    uint32_t kept = load_relaxed(&kept_in);
    struct large *found = (kept >> own & 1) != 0 ? get_from(&bigcache_shards[own], units) : NULL;
    for (kept &= ~(1u << own); kept != 0 && found == NULL; kept &= kept - 1)
        found = get_from(&bigcache_shards[__builtin_ctz(kept)], units);
    return found;
}

/* The shard with the block that was freed the longest ago; a moment old. NULL: nothing is kept. */
static struct bigcache_shard *oldest_shard(void)
{
    struct bigcache_shard *oldest = NULL;
    for (uint32_t kept = load_relaxed(&kept_in); kept != 0; kept &= kept - 1) {
        struct bigcache_shard *shard = &bigcache_shards[__builtin_ctz(kept)];
        if (oldest == NULL || load_relaxed(&shard->oldest_ms) < load_relaxed(&oldest->oldest_ms))
            oldest = shard;
    }
    return oldest;
}

static struct large *evict_from(struct bigcache_shard *shard, uint64_t before_ms)
{
    struct large *oldest = NULL;
    lock_take(&shard->lock);
    if (shard->by_age.last != NULL && shard->oldest_ms < before_ms) {
        oldest = LIST_ENTRY(shard->by_age.last, struct large, age);
        take_out(shard, oldest);
    }
    lock_drop(&shard->lock);
    return oldest;
}

struct large *bigcache_evict(uint64_t before_ms)
{
    struct large *evicted = NULL;
    if (bigcache_bytes() > load_relaxed(&policy.bigcache_bytes))
        before_ms = NEVER;
    for (struct bigcache_shard *oldest; evicted == NULL && (oldest = oldest_shard()) != NULL;) {
        if (load_relaxed(&oldest->oldest_ms) >= before_ms)
            break;
        evicted = evict_from(oldest, before_ms);
    }
    return evicted;
}

size_t bigcache_bytes(void)
{
    size_t bytes = 0;
    for (uint32_t kept = load_relaxed(&kept_in); kept != 0; kept &= kept - 1)
        bytes += load_relaxed(&bigcache_shards[__builtin_ctz(kept)].bytes);
    return bytes;
}

void bigcache_lock_all(void)
{
    shards_lock(bigcache_shards, sizeof bigcache_shards[0]);
}

void bigcache_unlock_all(void)
{
    shards_unlock(bigcache_shards, sizeof bigcache_shards[0]);
}

bool bigcache_lock_is_mine(void)
{
    return shards_lock_is_mine(bigcache_shards, sizeof bigcache_shards[0]);
}
