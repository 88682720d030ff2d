/*
 * What a block holds: a pattern that follows from a seed and the place in the block. Blocks of up to CONTENT_FULL bytes
 * hold it in all bytes; larger ones at both ends and at one place in each page (above 1 MiB: in every eighth), which is
 * enough to notice a page that was lost, zeroed or given out twice.
 */
#ifndef HAK_SOAK_CONTENT_H
#define HAK_SOAK_CONTENT_H

#include <stddef.h>
#include <stdint.h>

enum { CONTENT_FULL = 16384 };

/* Places that are in order. */
#define CONTENT_RIGHT SIZE_MAX

/* Writes the pattern of a block of `size` bytes, leaving out places whose page ends before `from`. */
void content_fill(unsigned char *block, size_t size, size_t from, uint64_t seed);

/* The first wrong byte below `upto` in a block that was filled for `size` bytes, or CONTENT_RIGHT. */
size_t content_wrong(const unsigned char *block, size_t size, size_t upto, uint64_t seed);

/* The first byte that is not zero, looking where the pattern will be, or CONTENT_RIGHT. */
size_t content_not_zero(const unsigned char *block, size_t size, uint64_t seed);

/* Where to fill from in a block that was filled for `old` bytes and now has `size`. */
size_t content_refill_from(size_t old, size_t size);

#endif
