/*
 * Size classes that are opened and closed while the program runs.
 *
 *             open                     close                 nothing left of it
 *   undefined ────▶ open: in the table ────▶ closed: draining ────▶ undefined
 *                     ▲                        │
 *                     └────────────────────────┘ opened again, of the same size
 *
 * What an id means may change only while no slab of it exists, and everything else follows: a block that is live, in a
 * magazine, an outbox or a letter belongs to a slab that is not empty. Who makes a slab counts it first and looks then whether
 * the id is defined; who undefines an id does that first and looks then whether a slab is counted. One sees the other
 * (docs/memory-ordering.md). A slab of such an id that moves from heap to heap does so under life_lock, as all changes here.
 *
 * Two threads may still disagree: one has read the table, and by the time it comes for a block, the id is another class's.
 * Hot functions cannot be harmed: the thread's own magazine of the id was empty then, and is filled by nobody else. Behind
 * the door, who asked a class for a block looks whether it is large enough, once he has it: then the class stays what it is.
 *
 * A class that is opened late has most of its blocks in slabs of the fixed class that served it before. Were their holes left
 * to others, memory would grow for as long as the program goes on freeing and allocating. So a refill takes blocks of the fixed
 * class, as long as the heap's slabs have any, and makes new slabs when they have not: the new class serves growth. Such blocks
 * are larger than they need be, and go back to where they are from when they are freed. Not in the hardened library, where the
 * class says where a block's seal is.
 */
#ifndef HAK_HEAP_CLASSES_H
#define HAK_HEAP_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "heap/heap.h"

/* Ids by bits. Written under life_lock. */
extern HIDDEN uint64_t classes_defined;  /* those made at run time of which there may be slabs */
extern HIDDEN uint64_t classes_draining; /* of them, those that are closed */

/* How often one was undefined, or nearly. */
extern HIDDEN uint32_t classes_undone;

/* Opens a class of `size` bytes, a multiple of 16 between two fixed classes; returns its id. SIZE_CLASSES: there can be none
 * of this size, there is one open already, or no id is left. Takes life_lock. */
unsigned classes_open(size_t size);

/* Closes an open class: no more requests are of it. Takes life_lock. */
void classes_close(unsigned id);

/* A closed class of which nothing is left is no more: its id is for another. Looks at one of them, the next in turn. Takes
 * life_lock, if there are any. */
void classes_reclaim_one(void);

/* At the heartbeat of the heap's owner: gives back what it has cached of closed classes. */
void classes_leave_closed(struct heap *heap);

/* Who has found no block of `class`, which the table named for this size: was there no memory? Not if the table names another now,
 * or `undone`, classes_undone as it was before the table was read, has changed: the id may have been undefined and be the same again. */
ALWAYS_INLINE bool classes_stayed(size_t size, unsigned class, uint32_t undone)
{
    return size_class_of(size) == class && load_acquire(&classes_undone) == undone;
}

/* Before a slab is made. False: the id is not defined, and nothing is counted. */
ALWAYS_INLINE bool classes_count_slab(struct heap *heap, unsigned class)
{
    uint32_t *slabs = &heap->counts->slabs[class];
    if (LIKELY(class < SIZE_CLASSES_FIXED)) {
        owner_add(slabs, 1u);
        return true;
    }
    (void)__atomic_fetch_add(slabs, 1u, __ATOMIC_SEQ_CST);
    if (LIKELY((__atomic_load_n(&classes_defined, __ATOMIC_SEQ_CST) >> class & 1) != 0))
        return true;
    store_release(slabs, *slabs - 1);
    return false;
}

/* Before the magazine of a class made at run time takes blocks of the fixed class that would serve its requests: until
 * classes_return, the id stays what it is, as if there were a slab of it. False: it is not defined. */
ALWAYS_INLINE bool classes_borrow(struct heap *heap, unsigned class)
{
    uint8_t *borrows = &heap->shelf[class].borrows;
    (void)__atomic_exchange_n(borrows, (uint8_t)1, __ATOMIC_SEQ_CST);
    if (LIKELY((__atomic_load_n(&classes_defined, __ATOMIC_SEQ_CST) >> class & 1) != 0))
        return true;
    store_release(borrows, (uint8_t)0);
    return false;
}

/* The magazine is empty. */
ALWAYS_INLINE void classes_return(struct heap *heap, unsigned class)
{
    store_release(&heap->shelf[class].borrows, (uint8_t)0);
}

/* The last thing that is done to a slab, or for one that there was no memory for. */
ALWAYS_INLINE void classes_uncount_slab(struct heap *heap, unsigned class)
{
    uint32_t *slabs = &heap->counts->slabs[class];
    store_release(slabs, *slabs - 1);
}

#endif
