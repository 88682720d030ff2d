/* Entering and leaving the door: the owner's half of the freeze protocol (freeze.h). */
#ifndef HAK_HEAP_ENTRY_H
#define HAK_HEAP_ENTRY_H

#include "base/atomic.h"
#include "heap/freeze.h"
#include "heap/heap.h"

/* The owner says that it is inside, then looks whether somebody has frozen the heap; the thief says that the
 * heap is frozen, makes all threads pass a barrier, then looks whether the owner is inside. One of them sees
 * the other. `seen` is the view that brought the owner here. */
ALWAYS_INLINE void entry_enter(struct heap *heap, const struct view *seen)
{
    store_relaxed(&heap->in_door, 1u);
    compiler_fence();
    if (UNLIKELY(seen != &heap->view || load_relaxed(&heap->frozen) != FREEZE_NONE))
        freeze_reopen(heap);
}

/* Takes a lock that may be held for long: by a thief, or by a fork. Nothing of the heap is half done just now. */
ALWAYS_INLINE void entry_take(struct heap *heap, struct lock *lock)
{
    store_release(&heap->in_door, (uint32_t)DOOR_WAITS);
    lock_take(lock);
    store_relaxed(&heap->in_door, (uint32_t)DOOR_INSIDE);
}

ALWAYS_INLINE void entry_leave(struct heap *heap)
{
    compiler_fence();
    store_release(&heap->in_door, 0u);
}

#endif
