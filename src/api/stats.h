/* What the process holds (struct hak_stats), for the functions that say so in libc's terms and in ours. */
#ifndef HAK_API_STATS_H
#define HAK_API_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "config/size_class.h"
#include "hakmem.h"

struct heap;

/* Counts are exact while no other thread allocates. */
void stats_read(struct hak_stats *stats);

/* Blocks of one class, in one heap or in several. */
struct class_use {
    size_t out;      /* of slabs: live, or in some magazine */
    size_t cached;   /* in magazines */
    size_t in_slabs; /* free */
};

/* Adds those of this heap. A moment old; any thread. */
void class_use_add(struct class_use *use, const struct heap *heap, unsigned class);

/* Those of all heaps. */
struct class_use class_use_sum(unsigned class);

/* Those that are live. A magazine may hold blocks of slabs that another heap has adopted: it is right of all heaps together; and a class
 * that was opened at run time may have borrowed some of the next fixed one's, which are too few here, below 0 even, and too many there:
 * only a sum over all classes is exact. */
ptrdiff_t class_use_live(const struct class_use *use);

/* What is no less than 0 but for what is counted elsewhere, or has changed meanwhile. */
ALWAYS_INLINE size_t above_zero(ptrdiff_t count)
{
    return count > 0 ? (size_t)count : 0;
}

/* Free blocks of one heap. */
struct heap_free {
    unsigned number;
    size_t slab_bytes;                  /* all that its slabs hold, less holes */
    size_t free_bytes;                  /* of it, in slabs */
    size_t cached_bytes;                /* of it, in magazines */
    size_t cached_blocks[SIZE_CLASSES];
    const struct heap *at;              /* where stats_next_heap goes on */
};

/* The first heap if free->at is NULL, else the next. False: there are no more. A moment old; any thread. */
bool stats_next_heap(struct heap_free *free);

/* Bytes of the heap that are in memory: the kernel is asked, for each superslab. */
size_t stats_resident_bytes(void);

#endif
