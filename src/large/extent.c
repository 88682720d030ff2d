#include "large/extent.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/shard.h"
#include "config/policy.h"
#include "large/move.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/limit.h"

/* The user sees sizes in steps of 4 KiB, so that programs that count usable sizes do not count the unused
 * end of the last unit. */
#define USABLE_STEP (4 * KIB)

/* A hardened block has a page behind it. */
size_t extent_units(size_t size)
{
    size_t page = os_page_size();
    return align_up(max_size(size, 1) + (HARDENED ? page : 0), max_size(UNIT_SIZE, page)) >> UNIT_SHIFT;
}

size_t extent_usable(const struct large *block, size_t size)
{
    return HARDENED ? size : min_size(align_up(size, USABLE_STEP), block->units << UNIT_SHIFT);
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

void extent_begin_last(struct large *block, size_t bytes)
{
    block->collapses = huge_collapses_at(last_byte(block));
    count_untouched(block, bytes);
}

void extent_begin(struct large *block)
{
    extent_begin_last(block, behind_user(block));
}

/* Returns the bytes that have no memory yet. What was untouched has some all the same if the superslab has become a huge page since. */
static size_t lessen_to(struct large *block, size_t bytes)
{
    size_t fewer = block->untouched - bytes;
    if (fewer == 0)
        return 0;
    count_untouched(block, bytes);
    if (block->collapses == huge_collapses_at(last_byte(block)))
        return fewer;
    huge_counts_again(last_byte(block), fewer);
    return 0;
}

void extent_lessen(struct large *block)
{
    limit_note_filled(lessen_to(block, min_size(block->untouched, behind_user(block))));
}

void extent_end(struct large *block)
{
    (void)lessen_to(block, 0);
}
