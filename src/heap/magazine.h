/*
 * Magazines: arrays of pointers to free blocks, one per class and thread. Neither pushing nor popping
 * touches the block.
 *
 * Everything here runs in the owner's door (or on an idle heap). The hot functions may still run in a signal
 * handler that interrupts the door, so a magazine is *held*, closed for both, while its slots move.
 */
#ifndef HAK_HEAP_MAGAZINE_H
#define HAK_HEAP_MAGAZINE_H

#include "base/atomic.h"
#include "heap/heap.h"

/* However small its blocks. */
enum { MAGAZINE_SLOTS_MOST = 512 }; /* shelf.capacity has 16 bits */

/* All of a heap may always hold this part of what a thread may have (the policy's thread_cache_bytes). */
enum { MAGAZINES_SHARE = 8 };

/* Pops a block, after filling the magazine if it is empty. NULL: out of memory, or the class is no more
 * (classes.h). */
void *magazine_pop(struct heap *heap, unsigned class);

/* Pushes a block of this class, after giving back the oldest half if the magazine is full. A block for which
 * there is no room and no memory at all is lost. */
void magazine_push(struct heap *heap, unsigned class, void *p);

/* Has it no room, or no slots yet? */
ALWAYS_INLINE bool magazine_is_full(const struct heap *heap, unsigned class)
{
    return load_relaxed(heap->view.top[class] + 1) == SLOT_FULL;
}

/* Closes the magazine for the hot path and returns its top. The exchange is one instruction, so that what a signal handler
 * pops or pushes falls before or after it, and is seen; slots are read after it. Held once at a time. */
ALWAYS_INLINE void **magazine_hold(struct heap *heap, unsigned class)
{
    void **top = heap->view.top[class];
    while (!owner_compare_exchange(&heap->view.top[class], &top, closed_magazine)) {}
    compiler_fence();
    return top;
}

ALWAYS_INLINE void magazine_open(struct heap *heap, unsigned class, void **top)
{
    compiler_fence();
    store_relaxed(&heap->view.top[class], top);
}

/* Pushes, only if there is room; not while the magazines are in the hands of an interrupted function (interrupt.h). */
ALWAYS_INLINE bool magazine_keep(struct heap *heap, unsigned class, void *p)
{
    void **top = magazine_hold(heap, class);
    bool added = load_relaxed(top + 1) != SLOT_FULL;
    if (added)
        store_relaxed(++top, p);
    magazine_open(heap, class, top);
    return added;
}

/* Is p the block pushed last? */
ALWAYS_INLINE bool magazine_is_top(const struct heap *heap, unsigned class, const void *p)
{
    return p != NULL && load_relaxed(heap->view.top[class]) == p;
}

/* Gives the oldest `count` blocks back (all, if there are fewer), but for those that cannot be sent. */
void magazine_flush(struct heap *heap, unsigned class, size_t count);

/* The same of all blocks of all classes, in the hardened library those that wait before they go there too (delay.h). */
void magazine_flush_all(struct heap *heap);

/* Where a block of `class` goes when it leaves a magazine of `heap`: to its slab, or to the heap that has
 * adopted that. False: there is no memory to send it, and it stays. */
bool magazine_give_back(struct heap *heap, unsigned class, void *p);

/* Makes room for at least `count` blocks, within the limits of the policy. */
void magazine_widen(struct heap *heap, unsigned class, size_t count);

/* Has it grown, and do all of the heap's hold more by now than they may, and a quarter? So it is in a heap that has become
 * smaller, or where the policy's limit has come down. */
bool magazine_is_too_wide(const struct heap *heap, unsigned class);

/* Fills a class's magazine no more: gives everything back and halves its capacity. */
void magazine_trim(struct heap *heap, unsigned class);

/* Ends the process if a block is in the magazine twice, is free in its slab, or is none. */
void magazine_audit(struct heap *heap, unsigned class);

/* Slots of the magazine up to its top, and the blocks in them: others may have emptied some while the owner sleeps. Any thread; of
 * another's heap, a snapshot that may be off while the owner works. */
size_t magazine_count(const struct heap *heap, unsigned class);
size_t magazine_blocks(const struct heap *heap, unsigned class);

/* Moves the blocks that a thief has left (non-NULL slots) together. */
void magazine_compact(struct heap *heap);

#endif
