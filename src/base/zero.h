/* Is memory all zero? By vectors of 16 bytes, which every processor of ours has. */
#ifndef HAK_BASE_ZERO_H
#define HAK_BASE_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the last bytes of a word are its highest");

/* 16 bytes of memory of any type, aligned to 16. */
typedef uint64_t vector __attribute__((vector_size(16), may_alias));

#define VECTOR_BYTES sizeof(vector)

ALWAYS_INLINE uint64_t load_word(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Of memory that need not be aligned. */
ALWAYS_INLINE vector load_vector(const void *at)
{
    vector loaded;
    memcpy(&loaded, at, sizeof loaded);
    return loaded;
}

ALWAYS_INLINE vector *vector_at(const vector *at, size_t bytes)
{
    return (vector *)((uintptr_t)at + bytes);
}

/* Of up to three vectors, that which is neither first nor last; or either. */
ALWAYS_INLINE size_t middle_of(size_t bytes)
{
    return (bytes - VECTOR_BYTES) / 2 & ~(VECTOR_BYTES - 1);
}

ALWAYS_INLINE vector ones_in_four(const char *at)
{
    return (load_vector(at) | load_vector(at + VECTOR_BYTES))
           | (load_vector(at + 2 * VECTOR_BYTES) | load_vector(at + 3 * VECTOR_BYTES));
}

/* Not 0 if one of `bytes`, at least 16, is not. The last vectors overlap those before, so that there are no tails. */
ALWAYS_INLINE uint64_t ones_in(const char *at, size_t bytes)
{
    const char *last = at + bytes - VECTOR_BYTES;
    vector any = load_vector(last);
    if (bytes >= 4 * VECTOR_BYTES) {
        for (last -= 3 * VECTOR_BYTES; at < last; at += 4 * VECTOR_BYTES)
            any |= ones_in_four(at);
        any |= ones_in_four(last);
    } else {
        for (; at < last; at += VECTOR_BYTES)
            any |= load_vector(at);
    }
    return any[0] | any[1];
}

/* The same of whole vectors, at least one. */
ALWAYS_INLINE uint64_t ones_in_vectors(const vector *at, size_t bytes)
{
    const vector *last = vector_at(at, bytes - VECTOR_BYTES);
    vector any = *last;
    if (bytes < 4 * VECTOR_BYTES) {
        any |= *at | *vector_at(at, middle_of(bytes));
    } else {
        last -= 3;
        any |= last[0] | last[1] | last[2];
        for (; at < last; at += 4)
            any |= at[0] | at[1] | at[2] | at[3];
    }
    return any[0] | any[1];
}

/* Makes whole vectors zero, at least one. */
ALWAYS_INLINE void clear_vectors(vector *at, size_t bytes)
{
    const vector zero = {0};
    vector *last = vector_at(at, bytes - VECTOR_BYTES);
    *last = zero;
    if (bytes < 4 * VECTOR_BYTES) {
        *at = zero;
        *vector_at(at, middle_of(bytes)) = zero;
        return;
    }
    last -= 3;
    for (; at < last; at += 4) {
        at[0] = at[1] = at[2] = at[3] = zero;
        PIN(at); /* or the compiler would make a call of it */
    }
    last[0] = last[1] = last[2] = zero;
}

/* Are the last `bytes` before `end` zero? They are few; at least 8 may be read. */
ALWAYS_INLINE bool is_zero_before(const char *end, size_t bytes)
{
    uint64_t any = load_word(end - sizeof any);
    if (bytes < sizeof any)
        return any >> 8 >> (8 * ~bytes & 63) == 0;
    const char *at = end - bytes;
    any |= load_word(at);
    for (at += bytes % sizeof any; at < end - sizeof any; at += sizeof any) {
        any |= load_word(at);
        PIN(at); /* gcc would compute where it ends up */
    }
    return any == 0;
}

/* Of any length. */
bool is_zero(const void *at, size_t bytes);

#endif
