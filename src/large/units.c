#include "large/units.h"

#include <stdint.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/span.h"

/* No foreign memory begins with this by chance, nor with 0. */
#define MOVE_MARK 0x9d5ca7e3u

void *units_take(size_t units, size_t align, bool *zero)
{
    void *at = span_take(units, align, zero);
    if (at != NULL || bigcache_bytes() == 0)
        return at;
    large_evict_all();
    return span_take(units, align, zero);
}

static void follow_policy(char *at, size_t units)
{
    if (policy.huge == HUGE_ON)
        os_allow_huge_pages(at, units << UNIT_SHIFT);
}

bool units_fill_hole(char *at, size_t units)
{
    bool filled = os_refill_hole(at, units << UNIT_SHIFT);
    if (filled)
        follow_policy(at, units);
    return filled;
}

/* If something is mapped there, it is somebody else's by now, or still ours: the two look the same, and the units are
 * not used again. */
void units_give_hole(char *at, size_t units, bool filled)
{
    if (filled)
        span_give(at, units, false);
    else
        span_abandon(units);
}

static uint32_t mark_of(const char *at)
{
    return MOVE_MARK ^ (uint32_t)((uintptr_t)at >> UNIT_SHIFT);
}

void units_mark(char *at)
{
    *(uint32_t *)(void *)at = mark_of(at);
}

/* Without the mark it is a hole. With it the run is as it was: at the limit of mappings the kernel refuses before it
 * unmaps, and each such run would be lost. */
void units_give_refused(char *at, size_t units)
{
    if (os_holds(at, mark_of(at)))
        span_give(at, units, true);
    else
        units_give_hole(at, units, units_fill_hole(at, units));
}

/* Gives a moved run ordinary pages, so that its mapping merges with its neighbours. False: it was given back as it is. */
static bool renew(char *at, size_t units)
{
    units_mark(at);
    if (!os_renew(at, units << UNIT_SHIFT)) {
        units_give_refused(at, units);
        return false;
    }
    huge_split_in(at, units); /* what is there now is none */
    follow_policy(at, units);
    return true;
}

void units_give(char *at, size_t units, bool moved, bool zero)
{
    if (!moved || renew(at, units))
        span_give(at, units, !moved && !zero);
}
