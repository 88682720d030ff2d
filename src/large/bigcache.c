#include "large/bigcache.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "config/size_class.h"

/* Bins are eighths of a doubling of units. */
enum { STEPS_SHIFT = 3, BINS = 48 << STEPS_SHIFT };

/* The first and the last bin of a search hold blocks that do not fit, too. */
enum { LOOKS_MOST = 16 };

struct lock bigcache_lock = LOCK_INITIALIZER(LOCK_BIGCACHE);

static struct list bins[BINS];
static struct list by_age;
static size_t bytes;

static unsigned bin_of(size_t units)
{
    if (units < 1 << STEPS_SHIFT)
        return (unsigned)units;
    unsigned log = log2_floor(units);
    unsigned step = (unsigned)(units >> (log - STEPS_SHIFT)) & ((1 << STEPS_SHIFT) - 1);
    return ((log - STEPS_SHIFT + 1) << STEPS_SHIFT) + step;
}

static void take_out(struct large *block)
{
    list_remove(&bins[bin_of(block->units)], &block->link);
    list_remove(&by_age, &block->age);
    store_relaxed(&bytes, bytes - (block->units << UNIT_SHIFT));
}

bool bigcache_put(struct large *block)
{
    size_t size = block->units << UNIT_SHIFT;
    if (size > policy.bigcache_bytes)
        return false;
    block->freed_ms = clock_now_ms();
    lock_take(&bigcache_lock);
    list_push_front(&bins[bin_of(block->units)], &block->link);
    list_push_front(&by_age, &block->age);
    store_relaxed(&bytes, bytes + size);
    lock_drop(&bigcache_lock);
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

struct large *bigcache_get(size_t units)
{
    if (load_relaxed(&bytes) == 0)
        return NULL;
    struct large *found = NULL;
    size_t most = units + units / 4;
    lock_take(&bigcache_lock);
    for (unsigned bin = bin_of(units); bin <= bin_of(most) && found == NULL; bin++)
        found = find_in(&bins[bin], units, most);
    if (found != NULL)
        take_out(found);
    lock_drop(&bigcache_lock);
    return found;
}

struct large *bigcache_evict(uint64_t before_ms)
{
    if (load_relaxed(&bytes) == 0)
        return NULL;
    struct large *oldest = NULL;
    lock_take(&bigcache_lock);
    if (by_age.last != NULL) {
        oldest = LIST_ENTRY(by_age.last, struct large, age);
        if (bytes <= policy.bigcache_bytes && oldest->freed_ms >= before_ms)
            oldest = NULL;
        else
            take_out(oldest);
    }
    lock_drop(&bigcache_lock);
    return oldest;
}

size_t bigcache_bytes(void)
{
    return load_relaxed(&bytes);
}
