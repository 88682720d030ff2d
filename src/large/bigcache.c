#include "large/bigcache.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "config/size_class.h"

/* Bins are eighths of a doubling of units, as block sizes are: a bin holds blocks of one size only, as long
 * as sizes were rounded up to bins. */
enum { STEPS_SHIFT = 3, BINS = 48 << STEPS_SHIFT };

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

struct large *bigcache_get(size_t units)
{
    if (load_relaxed(&bytes) == 0)
        return NULL;
    struct large *found = NULL;
    unsigned last = bin_of(units + units / 4);
    lock_take(&bigcache_lock);
    for (unsigned bin = bin_of(units); bin <= last && found == NULL; bin++)
        if (bins[bin].first != NULL)
            found = LIST_ENTRY(bins[bin].first, struct large, link);
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
