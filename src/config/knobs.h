/*
 * The policy values that a mode, a saved policy and the learner may set, each with hard limits. Guards, samples of the profiler,
 * checks and limits are not among them: those are the user's alone.
 *
 * Who sets one comes before who set it earlier, but for what is pinned: a value from the environment or from the program stays. Any
 * thread may get and set, at any time; each value is read and written by itself.
 */
#ifndef HAK_CONFIG_KNOBS_H
#define HAK_CONFIG_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum knob {
    KNOB_MAGAZINE_BYTES,     /* by size class */
    KNOB_BATCH_EIGHTHS,      /* by size class */
    KNOB_THREAD_CACHE_BYTES,
    KNOB_BIGCACHE_BYTES,
    KNOB_BIGCACHE_MS,        /* by size bin (size_class.h) */
    KNOB_KEPT_MOST_BYTES,
    KNOB_PURGE_MS,
    KNOB_PURGE_DOUBLINGS,
    KNOB_HUGE_FILL,
    KNOBS,
};

struct knob_info {
    char name[24]; /* the words lie here: pointers would be relocations in each process */
    char unit[24];
    char about[88];
    uint32_t count;  /* of values: 1, SIZE_CLASSES or SIZE_BINS */
    uint32_t offset; /* of the first, in struct policy: size_t each */
    uint64_t least;
    uint64_t most;
};

extern HIDDEN const struct knob_info knob_info[KNOBS];

struct policy;

/* Where a policy has the value; `index` is below knob_info[knob].count. */
ALWAYS_INLINE const size_t *knob_in(const struct policy *of, enum knob knob, unsigned index)
{
    return (const size_t *)(const void *)((const char *)of + knob_info[knob].offset) + index;
}

uint64_t knob_get(enum knob knob, unsigned index);

/* What the mode in force says. */
uint64_t knob_of_mode(enum knob knob, unsigned index);

/* Brings the value within its limits. Does nothing if the knob is pinned. */
void knob_set(enum knob knob, unsigned index, uint64_t value);

/* From now on knob_set leaves it alone, and modes do. */
void knob_pin(enum knob knob);
bool knob_is_pinned(enum knob knob);

#endif
