/*
 * Seals, of the hardened library: the last word of each small block says whether it is live, and how much of it its user has
 * asked for. Who does not know the process's secret cannot make one, so that an overflow into a seal is seen, and a pointer
 * that is not to a block leads to none.
 *
 * What is free reads as zero up to its seal, or, if it was never used or its pages were given back, wholly.
 *
 * Blocks of ZERO_CLASS, for requests of nothing, have no seal: nothing may touch them (fence.c).
 */
#ifndef HAK_HEAP_SEAL_H
#define HAK_HEAP_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/bits.h"
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

/* A seal is the key of its block, with the bytes between what was asked for and the seal in its middle bits: what strays
 * into it from either side meets others first. No live block has so many as a free one, whose seal is the key's complement. */
enum { UNUSED_SHIFT = 24 };

struct seal_secret {
    uint64_t mask;
    uint64_t factor;
};

extern HIDDEN struct seal_secret seal_secret;

ALWAYS_INLINE uint64_t seal_key(const void *p)
{
    return ((uintptr_t)p ^ seal_secret.mask) * seal_secret.factor;
}

ALWAYS_INLINE uint64_t *seal_word(const void *p, unsigned class)
{
    return (uint64_t *)((uintptr_t)p + seal_room(class));
}

ALWAYS_INLINE uint64_t seal_if_live(uint64_t key, uint64_t unused)
{
    return key ^ rotate_right(unused, 64 - UNUSED_SHIFT);
}

/* More than there is room for: it is no live block's seal. */
ALWAYS_INLINE uint64_t seal_unused(uint64_t seal, uint64_t key)
{
    return rotate_right(seal ^ key, UNUSED_SHIFT);
}

ALWAYS_INLINE uint64_t seal_if_free(uint64_t key)
{
    return ~key;
}

/* Of one that was never used, too. */
ALWAYS_INLINE bool seal_is_free(uint64_t seal, uint64_t key)
{
    return seal == seal_if_free(key) || seal == 0;
}

/* One that begins in one unit and ends in the next, where there may be nothing, or has no seal, is to be looked up. */
ALWAYS_INLINE bool seal_may_be_read(const void *p, unsigned class)
{
    size_t offset = (uintptr_t)p & (UNIT_SIZE - 1);
    return class != ZERO_CLASS && offset + size_classes[class].size <= UNIT_SIZE;
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
