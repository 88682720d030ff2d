/* Arithmetic on sizes, addresses and masks. */
#ifndef HAK_BASE_BITS_H
#define HAK_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

ALWAYS_INLINE bool is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* `to` is a power of two. The sum must not overflow. */
ALWAYS_INLINE size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}

ALWAYS_INLINE size_t align_down(size_t n, size_t to)
{
    return n & ~(to - 1);
}

ALWAYS_INLINE size_t divide_up(size_t n, size_t by)
{
    return n / by + (n % by != 0);
}

ALWAYS_INLINE size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

ALWAYS_INLINE size_t clamp_size(size_t n, size_t low, size_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* Floor of the binary logarithm; n > 0. */
ALWAYS_INLINE unsigned log2_floor(size_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

/* The next of a sequence of random numbers, none of them 0 (Marsaglia's xorshift). Fast; not for secrets. */
ALWAYS_INLINE uint64_t next_xorshift(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

ALWAYS_INLINE uint64_t rotate_right(uint64_t n, unsigned by)
{
    return n >> by | n << (64 - by);
}

/* A mask of n ones, n <= 32. */
ALWAYS_INLINE uint32_t mask32(unsigned n)
{
    return n >= 32 ? ~(uint32_t)0 : ((uint32_t)1 << n) - 1;
}

/* A bit for each of up to 128 things. */
typedef unsigned __int128 bits128;

/* A mask of n ones, n <= 128. */
ALWAYS_INLINE bits128 mask128(unsigned n)
{
    return n >= 128 ? ~(bits128)0 : ((bits128)1 << n) - 1;
}

/* Index of the lowest one in n, which is not 0. */
ALWAYS_INLINE unsigned lowest_one128(bits128 n)
{
    uint64_t low = (uint64_t)n;
    return low != 0 ? (unsigned)__builtin_ctzll(low) : 64 + (unsigned)__builtin_ctzll((uint64_t)(n >> 64));
}

/* Index of the highest one in n, which is not 0. */
ALWAYS_INLINE unsigned highest_one128(bits128 n)
{
    uint64_t high = (uint64_t)(n >> 64);
    return high != 0 ? 64 + log2_floor(high) : log2_floor((uint64_t)n);
}

/* The lowest run of ones in n, which is not 0: its length; *first is the index of its first. */
ALWAYS_INLINE unsigned lowest_run128(bits128 n, unsigned *first)
{
    *first = lowest_one128(n);
    bits128 after = ~(n >> *first);
    return after == 0 ? 128 : lowest_one128(after);
}

/* Bit i: i is a multiple of `of`, a power of two up to 128. */
ALWAYS_INLINE bits128 multiples128(unsigned of)
{
    if (of == 1)
        return ~(bits128)0;
    bits128 found = 1;
    for (unsigned distance = 64; distance >= of; distance /= 2)
        found |= found << distance;
    return found;
}

/* Bit i: `count` ones of n begin at i. count > 0. */
ALWAYS_INLINE bits128 run_starts128(bits128 n, unsigned count)
{
    for (unsigned have = 1; have < count;) {
        unsigned distance = count - have < have ? count - have : have;
        n &= n >> distance;
        have += distance;
    }
    return n;
}

/* Ones in n. (The built-in is a call into libgcc on the baseline x86-64.) */
ALWAYS_INLINE unsigned count_ones64(uint64_t n)
{
    n -= n >> 1 & 0x5555555555555555;
    n = (n & 0x3333333333333333) + (n >> 2 & 0x3333333333333333);
    n = (n + (n >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (unsigned)(n * 0x0101010101010101 >> 56);
}

ALWAYS_INLINE unsigned count_ones128(bits128 n)
{
    return count_ones64((uint64_t)n) + count_ones64((uint64_t)(n >> 64));
}

#endif
