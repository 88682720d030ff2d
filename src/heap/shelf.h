/*
 * A heap's slabs of one class: where blocks for magazines come from and go back to.
 *
 * Owner inside the door; whoever holds the heap while it is idle; a thief under heap.lock.
 */
#ifndef HAK_HEAP_SHELF_H
#define HAK_HEAP_SHELF_H

#include "base/atomic.h"
#include "heap/heap.h"

/* Takes up to `want` blocks from the heap's slabs, adopted ones or a new one, and writes them to top[0],
 * top[-1], …: popped from the top they come out ascending within a slab. Returns how many, 0 only when
 * memory is short, or the class, made at run time, is no more (classes.h). */
unsigned shelf_take(struct heap *heap, unsigned class, void **top, unsigned want);

/* The same, without making a slab. */
unsigned shelf_take_there(struct heap *heap, unsigned class, void **top, unsigned want);

/* Takes a block back and audits it: a pointer that is no block, or is free already, ends the process. The
 * block's slab must be this heap's. */
void shelf_put(struct heap *heap, void *p);

/* The same for blocks of this class, in turn, up to the first whose slab is not this heap's, or not of the class. Returns how many. */
unsigned shelf_put_all(struct heap *heap, unsigned class, void *const *blocks, unsigned count);

/* A block of the same class from the slab that serves now, for one that may move out of its own slab, which is on a list. NULL: it is
 * that slab that serves. */
void *shelf_take_instead(struct heap *heap, const void *p);

/* Makes a slab with room, which the caller unlinked from another heap, one of this heap. */
void shelf_adopt(struct heap *heap, struct slab *slab);

/* Unlinks a slab of `class` that has room; NULL if there is none. Its tags still name `heap`, and until it is another's it is
 * nobody's: under life_lock, as shelf_adopt, or while the caller has frozen the one heap and holds the other. */
struct slab *shelf_part_with(struct heap *heap, unsigned class);

/* All slabs that have room go from a heap that the caller has frozen to one that he holds, until the owner waits for its lock; not
 * those of classes made at run time, which move under life_lock only. */
void shelf_hand_over(struct heap *from, struct heap *to);

/* Gives back the units of the class's slabs without a block in use; or of all slabs. */
void shelf_leave(struct heap *heap, unsigned class);
void shelf_release_empty(struct heap *heap);

/* Of its slabs, pages of so many bytes more (or less: the negative) have no memory. */
ALWAYS_INLINE void shelf_note_holes(struct heap *heap, size_t bytes)
{
    if (bytes != 0)
        store_relaxed(&heap->hole_bytes, heap->hole_bytes + bytes);
}

/* Blocks were taken from the slab that lie in so many bytes of pages that counted as absent. */
void shelf_note_taken(struct heap *heap, const struct slab *slab, size_t bytes);

/* If the slab's pages have come into memory in a huge page, none of them counts as absent any more. */
void shelf_know_absent(struct heap *heap, struct slab *slab);

/* A heap looks for old memory so often in the time that memory is kept, each time at another part of its classes. */
enum { LOOKS_PER_DELAY = 4 };

/* Before the heap takes units for a slab, beyond its record: gives back more than that in holes, if it finds so much in a part of its
 * slabs. The next time it goes on; when it has seen all, the record that it began with is the heap's. */
void shelf_offset(struct heap *heap, unsigned units, uint32_t record);

/* Begins a look for holes, pages without a block in use, at the next part of the classes. One that is not over goes on instead. */
void shelf_begin_look(struct heap *heap, uint64_t now_ms);

/* Continues it, at `now_ms`, for a small part of the time since it was continued last, until holes come to `most` bytes. Those of a slab
 * go back if nothing was taken from it or put into it since before the look before, or if the heap has outgrown its record. Returns
 * their bytes. */
size_t shelf_purge_cool(struct heap *heap, uint64_t now_ms, size_t most);

/* Gives back the holes of all classes, until somebody wants heap.lock. Returns their bytes. */
size_t shelf_purge_all(struct heap *heap);

/* Bytes of the heap's blocks that are live or in magazines. Any thread; a moment old. */
size_t shelf_out_bytes(const struct heap *heap);

/* Bytes of the heap's slabs that are neither in blocks in use nor given back. Any thread; a moment old. */
size_t shelf_free_bytes(const struct heap *heap);

/* Makes a slab ahead of need. False: out of memory. */
bool shelf_prepare(struct heap *heap, unsigned class);

/* Blocks of the class that the heap's slabs have to give. */
size_t shelf_room(const struct heap *heap, unsigned class);

#endif
