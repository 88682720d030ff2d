/*
 * Seals as the hot functions see them: all that is as it should be, in line and without a call. What is not is left as it
 * was; seal.h's functions, which look again, say what it is.
 */
#ifndef HAK_HEAP_SEAL_HOT_H
#define HAK_HEAP_SEAL_HOT_H

#include "base/zero.h"
#include "heap/keeper.h"
#include "heap/seal.h"

/* Larger blocks are cleared faster by libc. */
#define SEAL_HOT_MOST ((size_t)1024)

_Static_assert(!HARDENED || SEAL_BYTES == sizeof(uint64_t), "a seal is the last word of a block, and its half of a vector");

/* seal_live, of a block of a class of `bytes`, which is not ZERO_CLASS. False: it is not as a free one is. */
ALWAYS_INLINE bool seal_hot_live(void *p, size_t bytes, size_t size)
{
    uint64_t *seal = (uint64_t *)((uintptr_t)p + bytes) - 1;
    uint64_t key = seal_key(p);
    if (UNLIKELY(!seal_is_free(*seal, key)))
        return false;
    if (UNLIKELY(seal[-1] != 0 || (bytes > VECTOR_BYTES && ones_in_vectors(p, bytes - VECTOR_BYTES) != 0)))
        return false;
    *seal = seal_if_live(key, bytes - SEAL_BYTES - size);
    return true;
}

/* seal_size and seal_free, of what has the tag of a class of `bytes`. False: it is not a live block of `size` bytes (or of
 * any size, for SIZE_UNKNOWN), or too large, or has to be looked up. */
ALWAYS_INLINE bool seal_hot_free(void *p, size_t bytes, size_t size)
{
    if (UNLIKELY(bytes - VECTOR_BYTES > SEAL_HOT_MOST - VECTOR_BYTES)) /* or of ZERO_CLASS */
        return false;
    if (UNLIKELY(((uintptr_t)p & (UNIT_SIZE - 1)) + bytes > UNIT_SIZE))
        return false;
    uint64_t *seal = (uint64_t *)((uintptr_t)p + bytes) - 1;
    uint64_t key = seal_key(p);
    uint64_t unused = seal_unused(*seal, key);
    if (UNLIKELY(unused > bytes - SEAL_BYTES))
        return false;
    if (UNLIKELY(size != SIZE_UNKNOWN && size + unused != bytes - SEAL_BYTES))
        return false;
    if (UNLIKELY(!is_zero_before((const char *)seal, unused)))
        return false;
    /* To the end of a vector: what is unused is zero, and the seal comes next. */
    clear_vectors(p, align_down(bytes - SEAL_BYTES - unused, VECTOR_BYTES) + VECTOR_BYTES);
    *seal = seal_if_free(key);
    return true;
}

#endif
