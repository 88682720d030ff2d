/*
 * Seals, of the hardened library: the last word of each small block says whether it is live, and how much of it its user has
 * asked for. Who does not know the process's secret cannot make one, so that an overflow into a seal is seen, and a pointer
 * that is not to a block leads to none.
 *
 * What is free reads as zero up to its seal, or, if it was never used or its pages were given back, wholly.
 *
 * Blocks of ZERO_CLASS, for requests of nothing, have no seal: nothing may touch them (shelf.c).
 */
#ifndef HAK_HEAP_SEAL_H
#define HAK_HEAP_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "arena/arena.h"
#include "base/compiler.h"
#include "config/size_class.h"

/* What a request grows by, bytes: one of nothing, and no other, is then of the first class. */
#define SEAL_BYTES ((size_t)(HARDENED ? 8 : 0))

/* The largest request that a class serves. */
#define SEALED_MAX (SMALL_MAX - SEAL_BYTES)

enum { ZERO_CLASS = 0 };

/* The bytes before the seal. */
ALWAYS_INLINE size_t seal_room(unsigned class)
{
    return size_classes[class].size - SEAL_BYTES;
}

/* Has p, a block of any kind or NULL, a seal? */
ALWAYS_INLINE bool is_sealed(const void *p)
{
    return HARDENED && arena_tag(p) >= TAG_KINDS;
}

/* Makes the secret. Under the start-up lock. */
void seal_start(void);

/* A block of a class that was free becomes one of `size` bytes; it reads as zero. Ends the process if it was written to. */
void seal_live(void *p, unsigned class, size_t size);

/* The bytes that its user has asked for. Ends the process if p is not to a live block of the class, or what is behind them
 * has changed; `if_free` is what it means that the block is free. */
size_t seal_size(const void *p, unsigned class, const char *if_free);

/* A live block of `size` bytes becomes a free one. */
void seal_free(void *p, unsigned class, size_t size);

/* A live block becomes one of `size` bytes, at most the class's room. */
void seal_resize(void *p, unsigned class, size_t size);

#endif
