/* What all threads write is kept in shards, a cache line and more each, so that two threads seldom meet in one. */
#ifndef HAK_BASE_SHARD_H
#define HAK_BASE_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread.h"

enum { SHARDS = 16, SHARD_ALIGN = 64 };

/* Which of `count`, a power of two, is a thread's. Where libc keeps what it knows of a thread, at the end of its stack, is an odd number of
 * guards from the next thread's, and a guard has 4 KiB, or 64 where pages may be that large. */
ALWAYS_INLINE unsigned shard_spread(uintptr_t thread, unsigned count)
{
    return (unsigned)((thread >> 12) + (thread >> 16)) % count;
}

/* The calling thread's. */
ALWAYS_INLINE unsigned shard_of_thread(void)
{
    return shard_spread(thread_self(), SHARDS);
}

/* The locks of `count` shards, each of `bytes` and with its lock first. They are of one rank: who takes several at once, as fork
 * does, takes them in this order. */
void shards_lock(void *shards, size_t bytes, unsigned count);
void shards_unlock(void *shards, size_t bytes, unsigned count);

/* Does the calling thread hold one of them? */
bool shards_lock_is_mine(const void *shards, size_t bytes, unsigned count);

#endif
