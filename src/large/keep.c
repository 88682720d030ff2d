#include "large/keep.h"

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "large/bigcache.h"
#include "large/extent.h"
#include "large/fenced.h"
#include "large/move.h"
#include "large/site.h"
#include "large/units.h"
#include "os/os.h"
#include "span/growth.h"
#include "span/huge.h"
#include "span/span.h"

static void give_fenced(struct large *block)
{
    bool zero;
    size_t units = fenced_end(block, &zero) >> UNIT_SHIFT;
    if (units > 0)
        span_give(block->base, units, !zero);
    if (units < block->units)
        span_abandon(block->units - units);
}

void keep_release(struct large *block)
{
    arena_assign_unit(block->base, TAG_LARGE_GONE, NULL);
    extent_end(block);
    if (HARDENED)
        give_fenced(block);
    else
        units_give(block->base, block->units, block->moved, block->zero);
    if (block->moved)
        move_forget();
    meta_free(block, sizeof *block);
}

static void evict_before(uint64_t before_ms, size_t most)
{
    for (struct large *old; most > 0 && (old = bigcache_evict(before_ms)) != NULL; most--)
        keep_release(old);
}

void large_evict_before(uint64_t before_ms)
{
    evict_before(before_ms, SIZE_MAX);
}

/* What exceeds the budget, which may have become much smaller: so many blocks at once. */
static void keep_to_budget(void)
{
    enum { EVICTED_MOST = 512 };
    evict_before(0, EVICTED_MOST);
}

void large_evict_all(void)
{
    large_evict_before(clock_now_ms() + 1);
}

void large_evict_old(uint64_t now_ms)
{
    bigcache_evict_old(now_ms, keep_release);
    keep_to_budget();
}

void keep_make_room(size_t units, bool all_stay)
{
    static size_t owed;
    struct large *old;
    size_t due = load_relaxed(&owed) + units;
    while (due > 0 && (old = bigcache_evict_for(due, all_stay)) != NULL) {
        due -= min_size(due, old->units);
        keep_release(old);
    }
    store_relaxed(&owed, bigcache_bytes() != 0 ? min_size(due, BIGCACHE_STAYS_MOST >> UNIT_SHIFT) : 0);
}

/* So many bytes, or what there is. */
static size_t give_up(size_t wanted)
{
    size_t given = span_purge_some(wanted);
    if (given >= wanted || HARDENED || bigcache_bytes() == 0)
        return given;
    keep_make_room(divide_up(wanted - given, UNIT_SIZE), false);
    return given + span_purge_some(wanted - given);
}

void large_offset_growth(size_t bytes)
{
    size_t wanted = growth_begin(bytes);
    if (UNLIKELY(wanted != 0))
        growth_end(wanted, give_up(wanted));
}

struct large *keep_take(size_t units, uint32_t site)
{
    struct large *block = bigcache_get(units, site);
    if (block != NULL && UNLIKELY(block->kept_for != SITE_NONE))
        site_forget(block);
    return block;
}

/* A block that is not to be kept. A larger one than policy would ever keep leaves its pages to the system. */
static COLD void let_go(struct large *block)
{
    if (!HARDENED && !block->moved && block->units << UNIT_SHIFT > load_relaxed(&policy.kept_most_bytes)) {
        huge_split_in(block->base, block->units); /* first, lest the kernel fill it again */
        block->zero = os_purge(block->base, block->units << UNIT_SHIFT);
    }
    keep_release(block);
}

void keep_put(struct large *block, bool kept)
{
    if (!kept)
        let_go(block);
    else if (bigcache_put(block))
        keep_to_budget();
}
