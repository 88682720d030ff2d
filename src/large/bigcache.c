#include "large/bigcache.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/shard.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "os/os.h"

/* Bins are eighths of a doubling of units. */
enum { STEPS_SHIFT = 3, BINS = 48 << STEPS_SHIFT };

/* The first and the last bin of a search hold blocks that do not fit, too. */
enum { LOOKS_MOST = 16 };

/* A block of the hardened library is lent again after so many frees in its shard, and up to so many more: a pointer to what was
 * freed leads to closed pages for a while, and nobody knows for how long. */
enum { REST_LEAST = 8, REST_SPREAD = 16 };

/* Of a shard, by age: at one look, and between two times that its lock is held. The latter are nobody's until they are released, and a
 * fork's child loses them. */
enum { EVICTED_MOST = 512, EVICTED_AT_ONCE = 8 };

#define NEVER UINT64_MAX

struct bigcache_shard bigcache_shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = LOCK_INITIALIZER(LOCK_BIGCACHE)}};

/* Newest first. Apart from the shards, whose other words lie close together for those who look at all. */
static struct list bins[SHARDS][BINS];

/* Bit i: shard i has kept something. */
static uint32_t used_in;

static unsigned bin_of(size_t units)
{
    if (units < 1 << STEPS_SHIFT)
        return (unsigned)units;
    unsigned log = log2_floor(units);
    unsigned step = (unsigned)(units >> (log - STEPS_SHIFT)) & ((1 << STEPS_SHIFT) - 1);
    return ((log - STEPS_SHIFT + 1) << STEPS_SHIFT) + step;
}

static struct list *bin_in(const struct bigcache_shard *shard, size_t units)
{
    return &bins[shard - bigcache_shards][bin_of(units)];
}

static size_t bytes_of(const struct large *block)
{
    return block->units << UNIT_SHIFT;
}

static struct large *oldest_of_lease(const struct bigcache_shard *shard, unsigned lease)
{
    return LIST_ENTRY(shard->by_age[lease].last, struct large, age);
}

static unsigned lease_of(const struct large *block)
{
    return size_bin(bytes_of(block)) * (PATIENCE_MOST + 1) + block->patience;
}

static uint64_t lease_ms(unsigned lease)
{
    return (uint64_t)load_relaxed(&policy.bigcache_ms[lease / (PATIENCE_MOST + 1)]) << lease % (PATIENCE_MOST + 1);
}

uint64_t bigcache_longest_ms(void)
{
    size_t longest = 0;
    for (unsigned bin = 0; bin < SIZE_BINS; bin++)
        longest = max_size(longest, load_relaxed(&policy.bigcache_ms[bin]));
    return (uint64_t)longest << PATIENCE_MOST;
}

/* NULL: the shard is empty. */
static struct large *oldest_in(const struct bigcache_shard *shard)
{
    for (uint64_t left = shard->occupied; left != 0; left &= left - 1) {
        struct large *oldest = oldest_of_lease(shard, (unsigned)__builtin_ctzll(left));
        if (oldest->freed_ms == shard->oldest_ms)
            return oldest;
    }
    return NULL;
}

static void note_oldest(struct bigcache_shard *shard)
{
    uint64_t oldest_ms = NEVER;
    for (uint64_t left = shard->occupied; left != 0; left &= left - 1) {
        const struct large *oldest = oldest_of_lease(shard, (unsigned)__builtin_ctzll(left));
        if (oldest->freed_ms < oldest_ms)
            oldest_ms = oldest->freed_ms;
    }
    store_relaxed(&shard->oldest_ms, oldest_ms);
}

static uint32_t bit_of(const struct bigcache_shard *shard)
{
    return 1u << (shard - bigcache_shards);
}

/* Into the lists. */
static void enlist(struct bigcache_shard *shard, struct large *block)
{
    unsigned lease = lease_of(block);
    struct list *of_lease = &shard->by_age[lease];
    block->lease = (uint8_t)lease;
    if (of_lease->last == NULL) {
        if (shard->occupied == 0 || block->freed_ms < shard->oldest_ms)
            store_relaxed(&shard->oldest_ms, block->freed_ms);
        shard->occupied |= (uint64_t)1 << lease;
    }
    list_push_front(bin_in(shard, block->units), &block->link);
    list_push_front(of_lease, &block->age);
}

static void enlist_latest(struct bigcache_shard *shard)
{
    if (shard->latest != NULL)
        enlist(shard, shard->latest);
    shard->latest = NULL;
}

static void put_in(struct bigcache_shard *shard, struct large *block)
{
    struct large *before = shard->latest;
    shard->latest = block;
    if (UNLIKELY(before != NULL))
        enlist(shard, before);
    if (shard->occupied == 0)
        store_relaxed(&shard->oldest_ms, block->freed_ms);
    if (HARDENED) /* what was freed rests */
        enlist_latest(shard);
    store_relaxed(&shard->bytes, shard->bytes + bytes_of(block));
    if (UNLIKELY((load_relaxed(&used_in) & bit_of(shard)) == 0))
        add_relaxed(&used_in, bit_of(shard));
}

static void take_out(struct bigcache_shard *shard, struct large *block)
{
    struct list *of_lease = &shard->by_age[block->lease];
    bool was_last = block->age.next == NULL;
    list_remove(bin_in(shard, block->units), &block->link);
    list_remove(of_lease, &block->age);
    store_relaxed(&shard->bytes, shard->bytes - bytes_of(block));
    if (of_lease->last == NULL)
        shard->occupied &= ~((uint64_t)1 << block->lease);
    if (was_last && block->freed_ms == shard->oldest_ms)
        note_oldest(shard);
}

static uint32_t draw_rest(struct bigcache_shard *shard)
{
    if (shard->random == 0)
        shard->random = os_random() | 1;
    shard->random = next_xorshift(shard->random);
    return REST_LEAST + (uint32_t)(shard->random >> 32) % REST_SPREAD;
}

static bool is_over_budget(void)
{
    return bigcache_bytes() > load_relaxed(&policy.bigcache_bytes);
}

bool bigcache_put(struct large *block)
{
    struct bigcache_shard *shard = &bigcache_shards[shard_of_thread()];
    block->freed_ms = clock_now_ms();
    lock_take(&shard->lock);
    if (HARDENED)
        block->rested_at = ++shard->put + draw_rest(shard);
    put_in(shard, block);
    lock_drop(&shard->lock);
    return is_over_budget();
}

static bool has_rested(const struct bigcache_shard *shard, const struct large *block)
{
    return (int32_t)(shard->put - block->rested_at) >= 0;
}

/* What is looked for: of so many units, and rather one that is kept for the site. */
struct wanted {
    size_t least;
    size_t most;
    uint32_t site;
};

static bool fits(const struct bigcache_shard *shard, const struct large *block, const struct wanted *wanted)
{
    return block->units >= wanted->least && block->units <= wanted->most && (!HARDENED || has_rested(shard, block));
}

/* The newest is warm; the oldest has rested the longest. */
static struct large *find_in(const struct bigcache_shard *shard, const struct list *bin, const struct wanted *wanted)
{
    struct large *found = NULL;
    struct list_node *node = HARDENED ? bin->last : bin->first;
    for (int looks = 0; node != NULL && looks < LOOKS_MOST; node = HARDENED ? node->prev : node->next, looks++) {
        struct large *block = LIST_ENTRY(node, struct large, link);
        if (!fits(shard, block, wanted))
            continue;
        if (wanted->site == SITE_NONE || block->kept_for == wanted->site)
            return block;
        if (found == NULL)
            found = block;
    }
    return found;
}

static struct large *take_listed(struct bigcache_shard *shard, const struct wanted *wanted)
{
    struct large *found = NULL;
    enlist_latest(shard);
    const struct list *last = bin_in(shard, wanted->most);
    for (struct list *bin = bin_in(shard, wanted->least); bin <= last && found == NULL; bin++)
        found = find_in(shard, bin, wanted);
    if (found != NULL)
        take_out(shard, found);
    return found;
}

/* If it is just what is looked for. */
static struct large *take_latest(struct bigcache_shard *shard, const struct wanted *wanted)
{
    struct large *latest = shard->latest;
    if (latest == NULL || latest->units != wanted->least || (wanted->site != SITE_NONE && latest->kept_for != wanted->site))
        return NULL;
    shard->latest = NULL;
    store_relaxed(&shard->bytes, shard->bytes - bytes_of(latest));
    return latest;
}

static struct large *get_from(struct bigcache_shard *shard, const struct wanted *wanted)
{
    if (load_relaxed(&shard->bytes) < wanted->least << UNIT_SHIFT)
        return NULL;
    lock_take(&shard->lock);
    struct large *found = take_latest(shard, wanted);
    if (found == NULL)
        found = take_listed(shard, wanted);
    if (found != NULL)
        store_relaxed(&shard->served, shard->served + 1);
    lock_drop(&shard->lock);
    return found;
}

struct large *bigcache_get(size_t units, uint32_t site)
{
    const struct wanted wanted = {units, units + units / 4, site};
    unsigned own = shard_of_thread();
    struct large *found = get_from(&bigcache_shards[own], &wanted);
    for (uint32_t used = load_relaxed(&used_in) & ~(1u << own); used != 0 && found == NULL; used &= used - 1)
        found = get_from(&bigcache_shards[__builtin_ctz(used)], &wanted);
    return found;
}

/* The shard with the block that was freed the longest ago; a moment old. NULL: nothing is kept. */
static struct bigcache_shard *oldest_shard(void)
{
    struct bigcache_shard *oldest = NULL;
    for (uint32_t used = load_relaxed(&used_in); used != 0; used &= used - 1) {
        struct bigcache_shard *shard = &bigcache_shards[__builtin_ctz(used)];
        if (load_relaxed(&shard->bytes) != 0
            && (oldest == NULL || load_relaxed(&shard->oldest_ms) < load_relaxed(&oldest->oldest_ms)))
            oldest = shard;
    }
    return oldest;
}

/* The pages of a moved block go with it, and serve nobody else. Longer ones, and more of them, are too much to keep for that. */
static bool stays(const struct large *block)
{
    return block->moved && bytes_of(block) <= BIGCACHE_STAYS_MOST && bigcache_bytes() <= BIGCACHE_STAYING_MOST;
}

static struct large *evict_from(struct bigcache_shard *shard, uint64_t before_ms, size_t most, bool all_stay)
{
    lock_take(&shard->lock);
    enlist_latest(shard);
    struct large *oldest = oldest_in(shard);
    if (oldest != NULL && (oldest->freed_ms >= before_ms || (oldest->units > most && (all_stay || stays(oldest)))))
        oldest = NULL;
    if (oldest != NULL)
        take_out(shard, oldest);
    lock_drop(&shard->lock);
    return oldest;
}

struct large *bigcache_evict(uint64_t before_ms)
{
    struct large *evicted = NULL;
    if (before_ms != NEVER && is_over_budget())
        before_ms = NEVER;
    for (struct bigcache_shard *oldest; evicted == NULL && (oldest = oldest_shard()) != NULL;) {
        if (load_relaxed(&oldest->oldest_ms) >= before_ms)
            break;
        evicted = evict_from(oldest, before_ms, SIZE_MAX, false);
    }
    return evicted;
}

struct large *bigcache_evict_for(size_t units, bool all_stay)
{
    struct bigcache_shard *oldest = oldest_shard();
    return oldest != NULL ? evict_from(oldest, NEVER, units, all_stay) : NULL;
}

/* Returns how many; if that is EVICTED_AT_ONCE, there may be more. */
static NOINLINE unsigned evict_old_from(struct bigcache_shard *shard, uint64_t now_ms, void (*release)(struct large *block))
{
    struct large *old[EVICTED_AT_ONCE];
    unsigned count = 0;
    if (load_relaxed(&shard->bytes) == 0)
        return 0;
    lock_take(&shard->lock);
    enlist_latest(shard);
    for (uint64_t left = shard->occupied; left != 0; left &= left - 1) {
        unsigned lease = (unsigned)__builtin_ctzll(left);
        uint64_t kept_ms = lease_ms(lease);
        while (count < EVICTED_AT_ONCE && (shard->occupied >> lease & 1) != 0
               && oldest_of_lease(shard, lease)->freed_ms + kept_ms < now_ms) {
            struct large *block = oldest_of_lease(shard, lease);
            take_out(shard, block);
            if (block->is_trial) /* one that had to make room says nothing of its site */
                site_note_unwanted(block);
            old[count++] = block;
        }
    }
    lock_drop(&shard->lock);
    for (unsigned i = 0; i < count; i++)
        release(old[i]);
    return count;
}

void bigcache_evict_old(uint64_t now_ms, void (*release)(struct large *block))
{
    for (uint32_t used = load_relaxed(&used_in); used != 0; used &= used - 1) {
        struct bigcache_shard *shard = &bigcache_shards[__builtin_ctz(used)];
        int times = EVICTED_MOST / EVICTED_AT_ONCE;
        while (times-- > 0 && evict_old_from(shard, now_ms, release) == EVICTED_AT_ONCE)
            ;
    }
}

size_t bigcache_bytes(void)
{
    size_t bytes = 0;
    for (uint32_t used = load_relaxed(&used_in); used != 0; used &= used - 1)
        bytes += load_relaxed(&bigcache_shards[__builtin_ctz(used)].bytes);
    return bytes;
}

void bigcache_lock_all(void)
{
    shards_lock(bigcache_shards, sizeof bigcache_shards[0], SHARDS);
}

void bigcache_unlock_all(void)
{
    shards_unlock(bigcache_shards, sizeof bigcache_shards[0], SHARDS);
}

bool bigcache_lock_is_mine(void)
{
    return shards_lock_is_mine(bigcache_shards, sizeof bigcache_shards[0], SHARDS);
}
