/*
 * The life of heaps: birth, a thread's exit, the idle list, adoption of slabs.
 *
 * A heap has a thread, or is on the idle list, or is held by whoever took it off (which counts as inside its
 * door). Heaps are never freed: letters may be on their way to them.
 */
#ifndef HAK_HEAP_LIFE_H
#define HAK_HEAP_LIFE_H

#include "heap/heap.h"

/* A heap for the calling thread, idle before or new. Points `tls`, the thread's word, to its view and keeps
 * the address, for those who close heaps from outside; NULL for a heap that belongs to no one thread. NULL:
 * out of memory. */
struct heap *life_birth(struct view **tls);

/* The owner, inside its door, gives its heap back; its word is left at the dead view. */
void life_retire(struct heap *heap);

/* Puts a heap that has no thread on the idle list. The life lock is held. */
void life_idle_locked(struct heap *heap);

/* Takes one slab of this class with room from an idle heap, if there is one; it becomes `heap`'s. */
bool life_adopt(struct heap *heap, unsigned class);

/* Cleans the idle heap that waited longest: inbox drained, magazines flushed, empty slabs given back. */
void life_clean_one(void);
void life_clean_all(void);

/* The newest heap; the others follow by `next`. Any thread. */
struct heap *life_heaps(void);

extern HIDDEN struct lock life_lock;

#endif
