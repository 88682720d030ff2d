/* The heap's own stock of units, which saves most slabs the way to the span layer's locks. Owner inside the door, or
 * whoever holds the heap. */
#ifndef HAK_HEAP_STOCK_H
#define HAK_HEAP_STOCK_H

#include "heap/heap.h"

/* A run of units for a slab, its first a multiple of `align`, a power of two; NULL: out of memory. Bit u of *clean: unit u reads
 * as zero, and has no pages. */
void *stock_take(struct heap *heap, unsigned units, unsigned align, uint32_t *clean);

/* Takes back the units of a slab. */
void stock_give(struct heap *heap, void *at, unsigned units, uint32_t clean);

/* Gives all units in stock to the span layer. */
void stock_trim(struct heap *heap);

#endif
