/*
 * Under the memory limits (span/limit.h): giving back what is cached when one is reached, and telling the program when
 * that was not enough.
 *
 *   a take of units passes the soft limit ─▶ relief_note: a heartbeat is due now
 *   door, with the operation's work done ──▶ relief_at_heartbeat: gives back
 *   door, left ────────────────────────────▶ relief_tell: the program's callback, which may allocate
 */
#ifndef HAK_HEAP_RELIEF_H
#define HAK_HEAP_RELIEF_H

#include <stdbool.h>

#include "heap/heap.h"
#include "span/limit.h"

/* Gives back what nobody uses: the BigCache, what idle heaps cache, free units that hold pages; and, when a request has
 * been refused, what `own` caches, the caller's heap inside its door. NULL: none. No lock is held. Returns the bytes of the free units. */
size_t relief_give_back(struct heap *own);

/* A request of so many bytes was refused: gives back the same, if that is for want of room below the hard limit. True: it is tried again.
 * There may be room also because another thread has given something back since, or has moved a block, which counts twice for a moment. */
bool relief_for(struct heap *own, size_t bytes);

/* Makes a heartbeat due at once. Owner inside its door. */
void relief_hurry(struct heap *heap);

/* For who has taken units. Owner inside its door. */
ALWAYS_INLINE void relief_note(struct heap *heap)
{
    if (UNLIKELY(limit_presses()))
        relief_hurry(heap);
}

/* Gives back what nobody uses if the soft limit is passed; the first time it learns what that is. If that does not do, also holes in
 * slabs, and what threads have cached that are not inside the allocator just now; but not what the magazines of `own` hold, the
 * caller's heap inside its door. No lock held. True: the program is to be told *notice, outside. */
bool relief_at_heartbeat(struct heap *own, struct limit_notice *notice);

/* Calls the program's callback. Outside the door, no lock held; errno is kept. */
void relief_tell(const struct limit_notice *notice);

#endif
