#include "large/move.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "large/units.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/limit.h"

/* Below this a copy is as fast as three system calls. */
#define MOVE_LEAST (256 * KIB)

/* A block that grows will be filled in order: at most the last of its huge pages is not all in use. */
#define HUGE_LEAST (16 * MIB)

/* Each moved run is a mapping of its own, of the 65,530 that a process may have. */
enum { MOVED_MOST = 4096 };

static size_t moved_runs;

/* Where pages are larger, so are huge ones: up to 512 MiB. */
bool move_gives_huge_pages(size_t units)
{
    bool may = policy.huge == HUGE_AUTO && units << UNIT_SHIFT >= HUGE_LEAST && os_huge_page_size() == HUGE_SIZE;
    return policy.huge == HUGE_ON || may;
}

/* One mapping can be moved. Superslabs in it that became huge pages are mappings of their own, until the same is advised for all; in a
 * block that may have huge pages everywhere those are that did not become one, or were split. */
static bool unite(char *base, size_t bytes)
{
    os_allow_huge_pages(base, bytes);
    return os_can_move(base, bytes);
}

/* From then on the run of `old_bytes` does not count, until limit_end_move. */
static char *take_longer(size_t units, size_t old_bytes, unsigned *number)
{
    bool zero;
    bool borrowed = limit_borrow(old_bytes);
    char *to = units_take(units, units << UNIT_SHIFT >= HUGE_LEAST ? HUGE_SIZE >> UNIT_SHIFT : 1, &zero);
    if (to != NULL)
        *number = limit_begin_move(old_bytes);
    if (borrowed)
        limit_repay();
    return to;
}

static char *move(char *base, size_t units, size_t longer)
{
    unsigned number;
    size_t old_bytes = units << UNIT_SHIFT;
    char *to = take_longer(longer, old_bytes, &number);
    if (to == NULL)
        return NULL;
    units_mark(to);
    if (!os_move(base, old_bytes, to, longer << UNIT_SHIFT)) {
        units_give_refused(to, longer);
        limit_end_move(number, old_bytes);
        return NULL;
    }
    arena_assign_unit(base, TAG_LARGE_GONE, NULL);
    huge_split_in(to, longer); /* a huge page that was there has gone; what was moved is advised by the caller */
    bool filled = units_fill_hole(base, units);
    if (filled)
        huge_split_in(base, units); /* what is there now is none */
    limit_end_move(number, old_bytes);
    units_give_hole(base, units, filled);
    return to;
}

void move_forget(void)
{
    sub_relaxed(&moved_runs, (size_t)1);
}

char *move_pages(char *base, size_t units, bool moved, size_t longer)
{
    size_t bytes = units << UNIT_SHIFT;
    if (bytes < MOVE_LEAST || load_relaxed(&moved_runs) >= MOVED_MOST)
        return NULL;
    bool huge = huge_is_in(base, units);
    bool allowed = moved && move_gives_huge_pages(units); /* when it came, in all of it */
    bool may = os_can_move(base, bytes) || ((huge || allowed) && unite(base, bytes));
    char *to = may ? move(base, units, longer) : NULL;
    if (to != NULL && move_gives_huge_pages(longer))
        os_allow_huge_pages(to, longer << UNIT_SHIFT);
    else if (to != NULL && huge)
        os_forbid_huge_pages(to, longer << UNIT_SHIFT);
    else if (huge && !allowed) /* it stays, as it was */
        huge_forbid_others(base, units);
    if (to != NULL && !moved)
        add_relaxed(&moved_runs, (size_t)1);
    return to;
}
