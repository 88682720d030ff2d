/*
 * How far a large block reaches: the units that its size takes, what of them its user may use, and what behind that has no
 * memory because nobody could touch it since the run was new.
 */
#ifndef HAK_LARGE_EXTENT_H
#define HAK_LARGE_EXTENT_H

#include <stddef.h>

#include "base/compiler.h"
#include "large/large.h"

/* The units of a block for `size` bytes. */
size_t extent_units(size_t size);

/* What the user of a block for `size` bytes, whose units are known, may use of it. */
size_t extent_usable(const struct large *block, size_t size);

/* The run is new, and reads as zero: nobody can touch what is behind the user's part. */
void extent_begin(struct large *block);

/* The last `bytes` of the run are new. */
void extent_begin_last(struct large *block, size_t bytes);

/* The run is about to become longer, shorter, or nobody's: nothing of it is untouched any more. */
void extent_end(struct large *block);

/* For extent_note_use. */
void extent_lessen(struct large *block);

/* The user may use more than before, or less. */
ALWAYS_INLINE void extent_note_use(struct large *block)
{
    if (block->untouched != 0)
        extent_lessen(block);
}

#endif
