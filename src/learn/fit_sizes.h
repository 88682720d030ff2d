/*
 * Which sizes are requested, as far as the door sees it: of each refill of a magazine the size that was asked for, which
 * stands for the blocks that it was filled with. Requests that a magazine serves are not seen, so what grows counts most.
 *
 * Sizes are counted in steps of 16 bytes, in shards, each made by the first of its threads that needs it.
 */
#ifndef HAK_LEARN_FIT_SIZES_H
#define HAK_LEARN_FIT_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "config/size_class.h"

enum { FIT_STEPS = (int)(SMALL_MAX / SIZE_CLASS_STEP) + 1 };

/* The step of a request. */
ALWAYS_INLINE size_t fit_step(size_t size)
{
    return (size + SIZE_CLASS_STEP - 1) / SIZE_CLASS_STEP;
}

struct fit_sizes {
    uint32_t blocks[FIT_STEPS];
    uint32_t refills[SIZE_CLASSES_FIXED]; /* of sizes between this fixed class and the one below */
};

/* A refill of so many blocks. Behind the door, any thread, no lock held. Sizes that fixed classes fit are left out. */
void fit_sizes_note(size_t size, size_t blocks);

/* Adds what was noted since the last call to `sum`, in which old counts have less and less weight. One thread at a time. */
void fit_sizes_collect(struct fit_sizes *sum);

#endif
