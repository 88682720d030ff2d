/*
 * Many threads on few processors: they cannot all run at once, and what those that wait have cached serves nobody. So when more
 * have a heap than a few for each processor, the caches of each may grow to a part only of what they may else. Where there
 * are many processors, too, the threads meet at several locks of the span layer (span/shards.h) instead of one.
 *
 * How many processors there are (its affinity and the quota of its control group) a process asks when it has many
 * threads and is not small, and again each time that they have doubled.
 */
#ifndef HAK_HEAP_CROWD_H
#define HAK_HEAP_CROWD_H

#include <stddef.h>

#include "base/atomic.h"

/* 0: not known. */
extern HIDDEN size_t crowd_processors;

/* What one of the threads may have of `bytes`, `least` or more, if it is known how many processors there are. */
size_t crowd_part(size_t bytes, size_t least);

/* The same whether it is known or not. */
ALWAYS_INLINE size_t crowd_share(size_t bytes, size_t least)
{
    return LIKELY(load_relaxed(&crowd_processors) == 0) ? bytes : crowd_part(bytes, least);
}

/* Asks for the processors if it is time to. Inside the door, no lock held. */
void crowd_consider(void);

#endif
