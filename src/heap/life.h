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
 * the address, for those who close heaps from outside; NULL for a heap that belongs to no one thread, which has no slabs and
 * nothing cached then. NULL: out of memory. */
struct heap *life_birth(struct view **tls);

/* The owner, inside its door, gives its heap back; its word is left at the dead view. */
void life_retire(struct heap *heap);

/* Takes the heap from a thread that ended without telling us, and makes it idle. False: its thread is alive. Such
 * a thread allocated first in the last round of its destructors; its word is gone, and must not be written. */
bool life_reclaim(struct heap *heap);

/* The same for who holds the life lock and the heap's. */
bool life_reclaim_locked(struct heap *heap);

/* Takes the heap from a thread that ends in the middle of the door, by a signal handler of its own: nobody knows in what state
 * it is, and nobody uses it again. */
void life_quarantine(struct heap *heap);

/* Puts a heap that has no thread on the idle list. The life lock is held. */
void life_idle_locked(struct heap *heap);

/* Empties a heap: inbox drained, magazines flushed, outboxes posted, empty slabs and the stock given back. The caller
 * holds the heap, or is its owner inside the door. */
void life_empty(struct heap *heap);

/* Takes one slab of this class with room from an idle heap, if one of the first few has one; it becomes `heap`'s. Another thread that has
 * the life lock just now is a reason to find none: threads that grow at once do not queue for it. */
bool life_adopt(struct heap *heap, unsigned class);

/* Where there is no other memory: waits for the lock, and looks at all idle heaps. */
bool life_adopt_any(struct heap *heap, unsigned class);

/* A heap without a thread and with nothing cached, for a while: an idle one, or one that is made for it. NULL: there is no memory.
 * life_return makes it the first of the idle heaps that are asked for a slab. Who changes it holds a heap's lock meanwhile: its own, or
 * that of the heap whose slabs go there. */
struct heap *life_borrow(void);
void life_return(struct heap *heap);

/* Empties one idle heap that needs it, if there is one. life_clean_all: all of them. */
void life_clean_one(void);
void life_clean_all(void);

/* Cleans this heap, if it is idle. */
void life_clean(struct heap *heap);

/* The same, and gives back the holes of its slabs. Returns their bytes. */
size_t life_purge(struct heap *heap);

/* In a fork's child: if a thread had borrowed this heap that the child does not have, it is idle now. The life lock is held. */
void life_inherit_locked(struct heap *heap);

/* Heaps that threads have, about. Takes no lock. */
size_t life_count(void);

/* The newest heap; the others follow by `next`. Any thread. */
struct heap *life_heaps(void);

/* The same, for who reads it from outside. */
extern HIDDEN struct heap *life_newest;

extern HIDDEN struct lock life_lock;

#endif
