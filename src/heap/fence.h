/*
 * Units for the slabs of the hardened library: they read as zero, and are followed by closed ones, which end an overflow that
 * goes so far. Slabs of ZERO_CLASS are closed themselves.
 *
 * Each closed run costs the process mappings, of which it has 65,530: there is a most.
 */
#ifndef HAK_HEAP_FENCE_H
#define HAK_HEAP_FENCE_H

#include "heap/heap.h"

/* Units for a slab of the class; how many closed ones follow; bit u of *clean: unit u has no pages. NULL: out of memory. */
void *fence_take(struct heap *heap, unsigned class, uint32_t *fence, uint32_t *clean);

/* Of a slab that fresh blocks are taken from, up to this one. They are read before they are written: a read would bring the
 * system's page of zeroes, and the write after it a second fault. Writes nothing but zeroes, over zeroes. */
void fence_touch(struct slab *slab, const void *block);

/* Takes them back, with those that follow. */
void fence_give(struct heap *heap, char *base, unsigned class, uint32_t fence);

#endif
