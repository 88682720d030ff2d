#include "large/large.h"

#include <string.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/alone.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/shard.h"
#include "large/bigcache.h"
#include "large/extent.h"
#include "large/fenced.h"
#include "large/keep.h"
#include "large/site.h"
#include "large/units.h"
#include "os/os.h"
#include "span/span.h"

/* Below this it is not worth a system call to know what of a block is in memory. */
#define LOOK_LEAST (256 * KIB)

/* The growth that longer runs bring is not offset: blocks of many sizes come and go, and what one leaves the next cannot use whole. */
enum { OFFSET_UNITS_MOST = SLAB_UNITS_MAX };

struct large_live large_live[SHARDS + LARGE_LIVE_OWN];

static void count_shared(size_t blocks, size_t bytes)
{
    struct large_live *shared = &large_live[shard_of_thread()];
    add_relaxed(&shared->blocks, blocks);
    add_relaxed(&shared->bytes, bytes);
}

static void count_live(struct large_live *own, size_t blocks, size_t bytes)
{
    if (UNLIKELY(own == NULL)) {
        count_shared(blocks, bytes);
        return;
    }
    owner_add(&own->blocks, blocks);
    owner_add(&own->bytes, bytes);
}

static void *take_span(size_t units, size_t align, bool *zero)
{
    void *at = units_take(units, align, zero);
    if (at == NULL)
        return NULL;
    if (units <= OFFSET_UNITS_MOST)
        large_offset_growth(units << UNIT_SHIFT);
    return at;
}

static struct large *make(size_t units, size_t align, bool *zero)
{
    struct large *block = meta_alloc(sizeof *block);
    if (block == NULL && bigcache_bytes() > 0) {
        large_evict_all(); /* their records serve */
        block = meta_alloc(sizeof *block);
    }
    if (block == NULL)
        return NULL;
    block->base = take_span(units, align, zero);
    if (block->base == NULL) {
        meta_free(block, sizeof *block);
        return NULL;
    }
    block->units = units;
    block->freed_ms = UINT64_MAX;
    return block;
}

static struct large *lend(size_t units, size_t size, uint32_t site, bool *zero)
{
    struct large *block = keep_take(units, site);
    if (block == NULL)
        return NULL;
    block->bytes = extent_usable(block, size);
    if (HARDENED && !fenced_lend(block)) {
        keep_release(block);
        return NULL;
    }
    extent_note_use(block);
    *zero = HARDENED;
    return block;
}

static NOINLINE struct large *make_for(size_t units, size_t size, size_t align, bool *zero)
{
    if (!span_may_promise(units) || !span_may_promise(align >> UNIT_SHIFT)) /* superslabs that an alignment skips have records, too */
        return NULL;
    if (!HARDENED) /* whose freed blocks rest */
        keep_make_room(units, false);
    struct large *block = make(units, max_size(align >> UNIT_SHIFT, 1), zero);
    if (block == NULL)
        return NULL;
    block->bytes = extent_usable(block, size);
    if (HARDENED) {
        fenced_begin(block, *zero);
        *zero = true;
    }
    if (*zero)
        extent_begin(block);
    return block;
}

void *large_alloc_at(size_t size, size_t align, uint32_t site, struct large_live *live, bool *zero)
{
    size_t units = extent_units(size);
    *zero = false;
    struct large *block = align <= UNIT_SIZE ? lend(units, size, site, zero) : NULL;
    if (block == NULL)
        block = make_for(units, size, align, zero);
    if (block == NULL)
        return NULL;
    if (UNLIKELY(site != SITE_NONE))
        site_note_request(block, site, size);
    arena_assign_unit(block->base, TAG_LARGE, block);
    count_live(live, 1, block->bytes);
    return block->base;
}

void large_clear(void *p, size_t bytes)
{
    if (bytes < LOOK_LEAST)
        memset(p, 0, bytes);
    else
        os_clear(p, align_up(bytes, os_page_size()));
}

struct large *large_find(const void *p)
{
    if (arena_tag(p) != TAG_LARGE)
        return NULL;
    struct large *block = arena_span(p);
    return block->base == p ? block : NULL;
}

enum large_verdict large_free(void *p, struct large_live *live, struct large_freed *freed)
{
    if (((uintptr_t)p & (UNIT_SIZE - 1)) != 0)
        return LARGE_NOT_A_BLOCK;
    if (!exchange_if(&arena.tags[arena_unit(p)], TAG_LARGE, TAG_LARGE_KEPT))
        return LARGE_DOUBLE_FREE;
    struct large *block = arena_span(p); /* not before: of two frees at once, the other's block may be a third's by then */
    ASSERT(block->base == p);
    *freed = (struct large_freed){block->bytes, block->sample};
    block->sample = NULL;
    if (HARDENED && fenced_is_overrun(block))
        return LARGE_OVERRUN;
    if (UNLIKELY(block->site != SITE_NONE))
        site_note_free(block);
    bool kept = bigcache_wants(block);
    if (HARDENED)
        fenced_close(block, kept);
    count_live(live, (size_t)-1, -block->bytes);
    keep_put(block, kept);
    return LARGE_FINE;
}

void large_stats(struct large_stats *stats)
{
    *stats = (struct large_stats){0};
    for (unsigned i = 0; i < SHARDS + LARGE_LIVE_OWN; i++) {
        stats->live_blocks += load_relaxed(&large_live[i].blocks);
        stats->live_bytes += load_relaxed(&large_live[i].bytes);
        stats->untouched_bytes += load_relaxed(&large_live[i].untouched);
    }
}
