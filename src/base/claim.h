/*
 * What one thread of a process does at a time, and nobody waits for: the others leave it. The word says which process is at it, 0:
 * none. A fork's child has not the thread that was at it in its parent, and may begin.
 */
#ifndef HAK_BASE_CLAIM_H
#define HAK_BASE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/atomic.h"

/* False: another thread is at it. */
ALWAYS_INLINE bool claim_take(uint32_t *process)
{
    uint32_t own = (uint32_t)getpid();
    uint32_t seen = load_relaxed(process);
    return seen != own && __atomic_compare_exchange_n(process, &seen, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Is a thread of this process at it? */
ALWAYS_INLINE bool claim_is_taken(const uint32_t *process)
{
    uint32_t seen = load_relaxed(process);
    return seen != 0 && seen == (uint32_t)getpid();
}

ALWAYS_INLINE void claim_drop(uint32_t *process)
{
    store_release(process, 0u);
}

#endif
