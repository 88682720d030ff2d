#include "observe/profile_memory.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "observe/depot.h"

size_t profile_bytes_most = 64 * MIB;

size_t profile_own_bytes;

size_t profile_bytes(void)
{
    return load_relaxed(&profile_own_bytes) + depot_bytes();
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
        store_relaxed(&profile_own_bytes, profile_own_bytes + bytes);
    return piece;
}
