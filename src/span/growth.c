#include "span/growth.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "config/policy.h"
#include "span/limit.h"

/* For less it is not worth a system call. */
#define OFFSET_LEAST (64 * KIB)

static size_t most;   /* that units ever held, as limit.h counts them; offset growth apart */
static size_t credit; /* bytes that may be offset */

static size_t grown_by(size_t bytes)
{
    size_t held = load_relaxed(&limit_bytes);
    size_t before = load_relaxed(&most);
    return held > before ? min_size(held - before, bytes) : 0;
}

/* It stays as large as it is now, and earns by so many bytes of that at most. */
static void settle(size_t bytes)
{
    size_t grown = grown_by(bytes);
    store_relaxed(&most, max_size(load_relaxed(&most), load_relaxed(&limit_bytes)));
    store_relaxed(&credit, load_relaxed(&credit) + grown * GROWTH_OFFSETS);
}

size_t growth_begin(size_t bytes)
{
    size_t grown = grown_by(bytes);
    if (LIKELY(grown == 0))
        return 0;
    size_t wanted = max_size(grown, OFFSET_LEAST);
    /* Where all is huge pages, the pages of one unit cannot go alone. */
    if (wanted <= load_relaxed(&credit) && policy.huge != HUGE_ON)
        return wanted;
    settle(grown);
    return 0;
}

void growth_end(size_t wanted, size_t given)
{
    size_t before = load_relaxed(&credit);
    store_relaxed(&credit, before - min_size(given, before));
    settle(wanted - min_size(given, wanted));
}
