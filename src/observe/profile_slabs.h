/*
 * Memory for sampled small blocks: slabs of the profiler's own, with a sample's record beside each block. Their units are
 * tagged TAG_SAMPLED.
 *
 * The profiler's lock is held, but for slabs_counts.
 */
#ifndef HAK_OBSERVE_PROFILE_SLABS_H
#define HAK_OBSERVE_PROFILE_SLABS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "slab/slab.h"

struct sample;

/* Is there room for a block of the class, a fixed one? False: out of memory. */
bool slabs_have_room(unsigned class);

/* A block of the class, for which there is room. */
void *slabs_take(unsigned class, struct sample *sample);

/* Takes back what may be one. If it is, *sample is its record; NULL: it has none any more. */
enum slab_verdict slabs_put(void *p, struct sample **sample);

/* Where the record of a live block is kept. NULL: it is no such block. */
struct sample **slabs_sample(const void *p);

struct slabs_counts {
    size_t blocks; /* live */
    size_t bytes;  /* that their users may use */
};

/* Any thread; a moment old. */
struct slabs_counts slabs_counts(void);

/* The same, for who reads it from outside. */
extern HIDDEN struct slabs_counts slabs_live;

#endif
