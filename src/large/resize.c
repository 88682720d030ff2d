#include <string.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/shard.h"
#include "large/bigcache.h"
#include "large/extent.h"
#include "large/fenced.h"
#include "large/keep.h"
#include "large/large.h"
#include "large/move.h"
#include "large/site.h"
#include "large/units.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/span.h"

/* A block that grows by less than this part of it is not copied to where pages are warm. One that moves has room to grow by that part. */
enum { COPIED_PART = 3, ROOM_PART = 4 };

/* Less than 0 if there are fewer. */
static void count_bytes(size_t more)
{
    add_relaxed(&large_live[shard_of_thread()].bytes, more);
}

static void set_bytes(struct large *block, size_t size)
{
    size_t before = block->bytes;
    block->bytes = extent_usable(block, size);
    extent_note_use(block);
    count_bytes(block->bytes - before);
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

/* To a run that the BigCache keeps, which has the other in exchange. For who grows by much that takes less time than to touch as many
 * pages that are new; and who grows one after the other finds warm pages. */
static bool try_copy(struct large *block, size_t units)
{
    struct large *kept = keep_take(units, SITE_NONE);
    if (kept == NULL)
        return false;
    memcpy(kept->base, block->base, block->bytes);
    exchange_runs(block, kept);
    arena_assign_unit(block->base, TAG_LARGE, block);
    arena_assign_unit(kept->base, TAG_LARGE_KEPT, kept);
    keep_put(kept, bigcache_wants(kept));
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
    size_t longer = units + room_to_grow(units);
    char *to = move_pages(block->base, block->units, block->moved, longer);
    if (to == NULL && longer > units) {
        longer = units;
        to = move_pages(block->base, block->units, block->moved, longer);
    }
    if (to == NULL)
        return false;
    size_t more = longer - block->units;
    block->moved = true;
    extent_end(block);
    block->base = to;
    block->units = longer;
    extent_begin_last(block, more << UNIT_SHIFT);
    arena_assign_unit(to, TAG_LARGE, block);
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
    extent_end(block); /* its user gets what was its end */
    block->units = units;
    if (zero) /* until it is known how much more he gets */
        extent_begin_last(block, more << UNIT_SHIFT);
    return true;
}

/* Of its units so many are `used`; the others were taken for growth. */
static bool grow(struct large *block, size_t units, size_t used)
{
    size_t before = block->units;
    bool by_little = units - used < used / COPIED_PART;
    if (!span_may_promise(units))
        return false;
    if (!by_little && try_copy(block, units))
        return true;
    if (!extend(block, units) && !try_move(block, units))
        return false;
    if (by_little && units << UNIT_SHIFT <= BIGCACHE_STAYS_MOST) /* what such a block leaves is nothing that the next one's growth takes */
        keep_make_room(block->units - before, true);
    return true;
}

static void shrink(struct large *block, size_t units)
{
    char *tail = block->base + (units << UNIT_SHIFT);
    extent_end(block);
    units_give(tail, block->units - units, block->moved, false);
    if (block->moved && move_gives_huge_pages(block->units) && !move_gives_huge_pages(units))
        os_forbid_huge_pages(block->base, units << UNIT_SHIFT);
    block->units = units;
}

static void *resize_fenced(struct large *block, size_t size)
{
    size_t before = block->bytes;
    if (!fenced_resize(block, size))
        return NULL;
    count_bytes(size - before);
    return block->base;
}

void *large_resize(struct large *block, size_t size)
{
    if (HARDENED)
        return resize_fenced(block, size);
    size_t units = extent_units(size);
    size_t used = extent_units(block->bytes);
    if (units > block->units && !grow(block, units, used))
        return NULL;
    if (units < used)
        shrink(block, units);
    set_bytes(block, size);
    return block->base;
}
