/*
 * What the model knows about one live block: where it is, what was asked for, and which pattern fills it.
 * A shadow belongs to one thread at a time.
 */
#ifndef HAK_TEST_SHADOW_H
#define HAK_TEST_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shadow {
    unsigned char *block; /* NULL: no block */
    size_t size;          /* as asked for */
    size_t usable;        /* all of it is filled */
    size_t alignment;     /* as asked for, or 0: natural */
    uint64_t seed;        /* of the pattern */
    bool free_sized_ok;   /* C23 allows the sized free functions for some allocating functions only */
};

/* Takes note of a new block and fills its usable area: alignment, usable size and overlap are checked. */
void shadow_adopt(struct shadow *shadow, void *block, size_t size, size_t alignment, uint64_t seed);

/* Checks the whole content. */
void shadow_verify(const struct shadow *shadow);

/* Checks the content and forgets the block, which must be freed right after. */
void *shadow_release(struct shadow *shadow);

/* Checks that `size` bytes of `block` hold the pattern of `seed`. */
void shadow_verify_prefix(const unsigned char *block, size_t size, uint64_t seed);

#endif
