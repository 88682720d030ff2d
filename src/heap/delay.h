/*
 * Delayed reuse, of the hardened library: a freed block waits among others of its class, and which of them goes on to the
 * magazine in its place is left to chance.
 */
#ifndef HAK_HEAP_DELAY_H
#define HAK_HEAP_DELAY_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/size_class.h"
#include "heap/heap.h"

enum { DELAY_SLOTS_SHIFT = 4, DELAY_SLOTS = 1 << DELAY_SLOTS_SHIFT };

/* Blocks of a class that may wait hold at most so many bytes; but two may, whatever their size. */
#define DELAY_BYTES_MOST ((size_t)16 * KIB)

/* Of all up to this size DELAY_SLOTS wait. */
#define DELAY_ALL_SLOTS (DELAY_BYTES_MOST / DELAY_SLOTS)

/* A heap's, and its owner's. What exchanges is FRAGILE: a handler that interrupts it finds the heap closed, and leaves the
 * slots alone. */
struct delay {
    uint64_t random; /* never 0 */
    uint64_t left;   /* of a random number, what was not used yet: below the highest one */
    void *slot[SIZE_CLASSES][DELAY_SLOTS];
};

/* It lies behind its heap, where the hot functions need no look to find it. */
#define DELAY_BYTES (HARDENED ? sizeof(struct delay) : 0)

ALWAYS_INLINE struct delay *delay_of(struct heap *heap)
{
    return (struct delay *)(void *)(heap + 1);
}

/* Of a new heap, which is zeroed. */
void delay_start(struct heap *heap);

/* 64 bits, of which the lowest are not as good. A handler that comes between repeats some. */
ALWAYS_INLINE uint64_t delay_random(struct delay *delay)
{
    delay->random = next_xorshift(delay->random);
    return delay->random * 0x2545f4914f6cdd1du;
}

/* 15 slots of each random number. */
ALWAYS_INLINE size_t delay_any_slot(struct delay *delay)
{
    uint64_t left = delay->left;
    if (UNLIKELY(left < DELAY_SLOTS))
        left = delay_random(delay) >> DELAY_SLOTS_SHIFT | (uint64_t)1 << (64 - DELAY_SLOTS_SHIFT);
    delay->left = left >> DELAY_SLOTS_SHIFT;
    return left % DELAY_SLOTS;
}

/* delay_exchange of a class of up to DELAY_ALL_SLOTS bytes, in line. The caller is FRAGILE. */
ALWAYS_INLINE void *delay_hot_exchange(struct delay *delay, size_t class, void *p)
{
    void **slot = &delay->slot[class][delay_any_slot(delay)];
    void *waited = *slot;
    *slot = p;
    return waited;
}

/* Puts in a freed block of the class; takes one out, or NULL if there was room. By the owner, unless a handler of its own
 * has interrupted it here: then the block comes back. */
void *delay_exchange(struct heap *heap, unsigned class, void *p);

/* Gives all of them, or those of a class, back to their slabs. In the owner's door, or of an idle heap. */
void delay_empty(struct heap *heap);
void delay_empty_class(struct heap *heap, unsigned class);

/* Blocks that a magazine was filled with: puts them into an order of chance, and has the processor fetch their seals, which
 * are the first that malloc looks at. */
void delay_refill(struct heap *heap, unsigned class, void **slots, unsigned count);

#endif
