#include "observe/profile_memory.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "observe/depot.h"

size_t profile_bytes_most = 64 * MIB;

static size_t own; /* bytes */

size_t profile_bytes(void)
{
    return load_relaxed(&own) + depot_bytes();
}

bool profile_is_full(void)
{
    return profile_bytes() >= profile_bytes_most;
}

void *profile_alloc(size_t bytes)
{
    if (profile_bytes() + bytes > profile_bytes_most)
        return NULL;
    void *piece = meta_alloc(bytes);
    if (piece != NULL)
        store_relaxed(&own, own + bytes);
    return piece;
}
