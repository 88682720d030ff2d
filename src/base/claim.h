/*
 * What one thread of a process does at a time, and nobody waits for: the others leave it. The word says which process is at it, 0:
 * none. A fork's child has not the thread that was at it in its parent, and may begin: it goes by another name, which is no ancestor's,
 * though its number may be, later or in another namespace.
 */
#ifndef HAK_BASE_CLAIM_H
#define HAK_BASE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "base/atomic.h"

/* Forks from the first process to this one. */
extern HIDDEN uint32_t claim_forks;

enum { CLAIM_PID_BITS = 22 }; /* the kernel gives no larger numbers */

ALWAYS_INLINE uint32_t claim_own_name(void)
{
    return (uint32_t)getpid() | load_relaxed(&claim_forks) << CLAIM_PID_BITS;
}

/* In a fork's child, before it has threads. */
ALWAYS_INLINE void claim_forked(void)
{
    store_relaxed(&claim_forks, load_relaxed(&claim_forks) + 1);
}

/* False: another thread is at it. */
ALWAYS_INLINE bool claim_take(uint32_t *process)
{
    uint32_t own = claim_own_name();
    uint32_t seen = load_relaxed(process);
    return seen != own && __atomic_compare_exchange_n(process, &seen, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Is a thread of this process at it? */
ALWAYS_INLINE bool claim_is_taken(const uint32_t *process)
{
    uint32_t seen = load_relaxed(process);
    return seen != 0 && seen == claim_own_name();
}

ALWAYS_INLINE void claim_drop(uint32_t *process)
{
    store_release(process, 0u);
}

#endif
