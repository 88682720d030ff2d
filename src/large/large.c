#include "large/large.h"

#include <string.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/alone.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/shard.h"
#include "config/policy.h"
#include "large/bigcache.h"
#include "large/fenced.h"
#include "large/move.h"
#include "large/site.h"
#include "large/units.h"
#include "os/os.h"
#include "span/growth.h"
#include "span/huge.h"
#include "span/limit.h"
#include "span/span.h"

/* The user sees sizes in steps of 4 KiB, so that programs that count usable sizes do not count the unused
 * end of the last unit. */
#define USABLE_STEP (4 * KIB)

/* Below this it is not worth a system call to know what of a block is in memory. */
#define LOOK_LEAST (256 * KIB)

/* The growth that longer runs bring is not offset: blocks of many sizes come and go, and what one leaves the next cannot use whole. */
enum { OFFSET_UNITS_MOST = SLAB_UNITS_MAX };

/* Each moved block is a mapping of its own, of the 65,530 that a process may have. */
enum { MOVED_MOST = 4096 };

/* A block that grows by less than this part of it is not copied to where pages are warm. One that moves has room to grow by that part. */
enum { COPIED_PART = 3, ROOM_PART = 4 };

struct large_live large_live[SHARDS + LARGE_LIVE_OWN];
static size_t moved_blocks;

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

/* A hardened block has a page behind it. */
static size_t units_for(size_t size)
{
    size_t page = os_page_size();
    return align_up(max_size(size, 1) + (HARDENED ? page : 0), max_size(UNIT_SIZE, page)) >> UNIT_SHIFT;
}

/* What the user of a block for `size` bytes may use. */
static size_t usable(const struct large *block, size_t size)
{
    return HARDENED ? size : min_size(align_up(size, USABLE_STEP), block->units << UNIT_SHIFT);
}

static void count_untouched(struct large *block, size_t bytes)
{
    if (bytes != block->untouched)
        add_relaxed(&large_live[shard_of_thread()].untouched, bytes - block->untouched);
    block->untouched = bytes;
}

static const char *last_byte(const struct large *block)
{
    return block->base + (block->units << UNIT_SHIFT) - 1;
}

/* Of a run that is new. */
static void begin_untouched(struct large *block, size_t bytes)
{
    block->collapses = huge_collapses_at(last_byte(block));
    count_untouched(block, bytes);
}

/* What was untouched has memory all the same if the superslab has become a huge page since. */
static void lessen_untouched(struct large *block, size_t bytes)
{
    size_t fewer = block->untouched - bytes;
    if (fewer == 0)
        return;
    count_untouched(block, bytes);
    if (block->collapses != huge_collapses_at(last_byte(block)))
        huge_counts_again(last_byte(block), fewer);
}

static size_t touched_at_once(const struct large *block)
{
    return block->moved && move_gives_huge_pages(block->units) ? HUGE_SIZE : os_page_size();
}

/* From where on no user can use it. A first touch of a huge page takes more than is touched. */
static size_t behind_user(const struct large *block)
{
    size_t all = block->units << UNIT_SHIFT;
    size_t end = HARDENED ? block->reach : align_up(block->bytes, touched_at_once(block));
    return policy.huge == HUGE_ON || end > all ? 0 : all - end;
}

/* The user may use more than before, or less. */
static void note_use(struct large *block)
{
    if (block->untouched != 0)
        lessen_untouched(block, min_size(block->untouched, behind_user(block)));
}

static void give_fenced(struct large *block)
{
    bool zero;
    size_t units = fenced_end(block, &zero) >> UNIT_SHIFT;
    if (units > 0)
        span_give(block->base, units, !zero);
    if (units < block->units)
        span_abandon(block->units - units);
}

static void release(struct large *block)
{
    arena_assign(block->base, 1, TAG_LARGE_GONE, NULL);
    lessen_untouched(block, 0);
    if (HARDENED)
        give_fenced(block);
    else
        units_give(block->base, block->units, block->moved, block->zero);
    if (block->moved)
        sub_relaxed(&moved_blocks, (size_t)1);
    meta_free(block, sizeof *block);
}

static void evict_before(uint64_t before_ms, size_t most)
{
    for (struct large *old; most > 0 && (old = bigcache_evict(before_ms)) != NULL; most--)
        release(old);
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
    struct list old = {0};
    bigcache_evict_old(now_ms, &old);
    while (old.first != NULL) {
        struct large *block = LIST_ENTRY(old.first, struct large, age);
        list_remove(&old, &block->age);
        release(block);
    }
    keep_to_budget();
}

/* Gives back the oldest kept blocks, of so many units in sum: what none of them could serve takes their pages, or others that are
 * warm, where it would have grown the process. A moved block that is longer may stay until requests have been as long together. */
static void make_room(size_t units)
{
    static size_t owed;
    struct large *old;
    size_t due = load_relaxed(&owed) + units;
    while (due > 0 && (old = bigcache_evict_for(due)) != NULL) {
        due -= min_size(due, old->units);
        release(old);
    }
    store_relaxed(&owed, bigcache_bytes() != 0 ? min_size(due, BIGCACHE_STAYS_MOST >> UNIT_SHIFT) : 0);
}

/* So many bytes, or what there is. */
static size_t give_up(size_t wanted)
{
    size_t given = span_purge_some(wanted);
    if (given >= wanted || HARDENED || bigcache_bytes() == 0)
        return given;
    make_room(divide_up(wanted - given, UNIT_SIZE));
    return given + span_purge_some(wanted - given);
}

void large_offset_growth(size_t bytes)
{
    size_t wanted = growth_begin(bytes);
    if (UNLIKELY(wanted != 0))
        growth_end(wanted, give_up(wanted));
}

static void *take_span(size_t units, size_t align, bool *zero)
{
    void *at = units_take(units, align, zero);
    if (at == NULL)
        return NULL;
    units_clear_tags(at, units);
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
    return block;
}

/* One that the BigCache keeps; NULL: none fits. */
static struct large *take_kept(size_t units, uint32_t site)
{
    struct large *block = bigcache_get(units, site);
    if (block != NULL && UNLIKELY(block->kept_for != SITE_NONE))
        site_forget(block);
    return block;
}

static struct large *lend(size_t units, size_t size, uint32_t site, bool *zero)
{
    struct large *block = take_kept(units, site);
    if (block == NULL)
        return NULL;
    block->bytes = usable(block, size);
    if (HARDENED && !fenced_lend(block)) {
        release(block);
        return NULL;
    }
    note_use(block);
    *zero = HARDENED;
    return block;
}

static NOINLINE struct large *make_for(size_t units, size_t size, size_t align, bool *zero)
{
    if (!span_may_promise(units) || !span_may_promise(align >> UNIT_SHIFT)) /* superslabs that an alignment skips have records, too */
        return NULL;
    if (!HARDENED) /* whose freed blocks rest */
        make_room(units);
    struct large *block = make(units, max_size(align >> UNIT_SHIFT, 1), zero);
    if (block == NULL)
        return NULL;
    block->bytes = usable(block, size);
    if (HARDENED) {
        fenced_begin(block, *zero);
        *zero = true;
    }
    if (*zero)
        begin_untouched(block, behind_user(block));
    return block;
}

void *large_alloc_at(size_t size, size_t align, uint32_t site, struct large_live *live, bool *zero)
{
    size_t units = units_for(size);
    *zero = false;
    struct large *block = align <= UNIT_SIZE ? lend(units, size, site, zero) : NULL;
    if (block == NULL)
        block = make_for(units, size, align, zero);
    if (block == NULL)
        return NULL;
    if (UNLIKELY(site != SITE_NONE))
        site_note_request(block, site, size);
    arena_assign(block->base, 1, TAG_LARGE, block);
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

/* A block that is not to be kept. A larger one than policy would ever keep leaves its pages to the system. */
static COLD void let_go(struct large *block)
{
    if (!HARDENED && !block->moved && block->units << UNIT_SHIFT > load_relaxed(&policy.kept_most_bytes))
        block->zero = os_purge(block->base, block->units << UNIT_SHIFT);
    release(block);
}

static void keep_or_let_go(struct large *block, bool kept)
{
    if (!kept)
        let_go(block);
    else if (bigcache_put(block))
        keep_to_budget();
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
    keep_or_let_go(block, kept);
    return LARGE_FINE;
}

static void set_bytes(struct large *block, size_t size)
{
    size_t before = block->bytes;
    block->bytes = usable(block, size);
    note_use(block);
    count_shared(0, block->bytes - before);
}

static void exchange_runs(struct large *block, struct large *other)
{
    struct large before = *block;
    block->base = other->base;
    block->units = other->units;
    block->untouched = other->untouched;
    block->collapses = other->collapses;
    block->moved = other->moved;
    other->base = before.base;
    other->units = before.units;
    other->untouched = before.untouched;
    other->collapses = before.collapses;
    other->moved = before.moved;
}

/* To a run that the BigCache keeps, which has the other in exchange. Where a block grows by much, that takes less time than to touch as
 * many pages that are new; and who grows one after the other finds warm pages. */
static bool try_copy(struct large *block, size_t units)
{
    size_t used = units_for(block->bytes);
    if (units - used < used / COPIED_PART)
        return false;
    struct large *kept = take_kept(units, SITE_NONE);
    if (kept == NULL)
        return false;
    memcpy(kept->base, block->base, block->bytes);
    exchange_runs(block, kept);
    arena_assign(block->base, 1, TAG_LARGE, block);
    arena_assign(kept->base, 1, TAG_LARGE_KEPT, kept);
    keep_or_let_go(kept, bigcache_wants(kept));
    return true;
}

/* How many units more a block that moves there is to have: who grows in small steps is not to move at each, and a moved block does not grow
 * in place. Nothing touches them before that; but a hard limit counts them. */
static size_t room_to_grow(size_t units)
{
    size_t room = align_up(units / ROOM_PART, max_size(os_page_size() >> UNIT_SHIFT, 1));
    return limit_is_hard() || !span_may_promise(units + room) ? 0 : room;
}

/* Moves the pages into a longer run; with room to grow, if that can be had. */
static bool try_move(struct large *block, size_t units)
{
    if (load_relaxed(&moved_blocks) >= MOVED_MOST)
        return false;
    size_t longer = units + room_to_grow(units);
    char *to = move_pages(block->base, block->units, block->moved, longer);
    if (to == NULL && longer > units) {
        longer = units;
        to = move_pages(block->base, block->units, block->moved, longer);
    }
    if (to == NULL)
        return false;
    if (!block->moved)
        add_relaxed(&moved_blocks, (size_t)1);
    size_t more = longer - block->units;
    block->moved = true;
    lessen_untouched(block, 0);
    block->base = to;
    block->units = longer;
    begin_untouched(block, more << UNIT_SHIFT);
    arena_assign(to, 1, TAG_LARGE, block);
    return true;
}

/* A moved block is one mapping; units beyond its end are of another, which mremap would refuse later. */
static bool extend(struct large *block, size_t units)
{
    bool zero = true;
    size_t more = units - block->units;
    char *end = block->base + (block->units << UNIT_SHIFT);
    if (block->moved || !span_extend(end, more, &zero))
        return false;
    units_clear_tags(end, more);
    lessen_untouched(block, 0); /* its user gets what was its end */
    block->units = units;
    if (zero) /* until it is known how much more he gets */
        begin_untouched(block, more << UNIT_SHIFT);
    return true;
}

static bool grow(struct large *block, size_t units)
{
    return span_may_promise(units) && (try_copy(block, units) || extend(block, units) || try_move(block, units));
}

static void shrink(struct large *block, size_t units)
{
    char *tail = block->base + (units << UNIT_SHIFT);
    lessen_untouched(block, 0);
    units_give(tail, block->units - units, block->moved, false);
    block->units = units;
}

static void *resize_fenced(struct large *block, size_t size)
{
    size_t before = block->bytes;
    if (!fenced_resize(block, size))
        return NULL;
    count_shared(0, size - before);
    return block->base;
}

void *large_resize(struct large *block, size_t size)
{
    if (HARDENED)
        return resize_fenced(block, size);
    size_t units = units_for(size);
    if (units > block->units && !grow(block, units))
        return NULL;
    if (units < units_for(block->bytes)) /* what is more than that was taken for growth */
        shrink(block, units);
    set_bytes(block, size);
    return block->base;
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
