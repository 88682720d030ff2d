/*
 * Delayed reuse, of the hardened library: a freed block waits among others of its class, and which of them goes on to the
 * magazine in its place is left to chance.
 */
#ifndef HAK_HEAP_DELAY_H
#define HAK_HEAP_DELAY_H

#include <stdint.h>

#include "config/size_class.h"

struct heap;

enum { DELAY_SLOTS = 16 };

/* A heap's. The slots are exchanged atomically: a signal handler may come between. */
struct delay {
    uint64_t random;
    void *slot[SIZE_CLASSES][DELAY_SLOTS];
};

/* Puts in a freed block of the class; takes one out, or NULL if there was room. By the owner. */
void *delay_exchange(struct heap *heap, unsigned class, void *p);

/* Gives all of them back to their slabs. In the owner's door, or of an idle heap. */
void delay_empty(struct heap *heap);

/* Puts `count` pointers into an order of chance. */
void delay_shuffle(struct heap *heap, void **slots, unsigned count);

#endif
