/*
 * Sites: places in the program that request large blocks, by number. What is counted of each, and for how long its blocks are
 * kept. Which place has which number, and what is best for it, is known above (learn/sites.h).
 *
 * How long a block waits in the BigCache until somebody wants it says what keeping it is worth, but only if it is kept for long
 * enough. So while sites are learned a few of each site's freed blocks are *trials*: kept for as long as any is, and only of them
 * the waits are counted. In observe mode, where nothing changes, they are kept as others.
 *
 * Any thread; relaxed additions, which only statistics and the learner read.
 */
#ifndef HAK_LARGE_SITE_H
#define HAK_LARGE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "config/policy.h"
#include "large/large.h"

enum {
    SITES = 512,      /* numbers; 0 is nobody's */
    SITE_NONE = 0,
    SITE_TIMES = 18,  /* less than 1 ms, 2 ms, 4 ms and so on; the last: longer */
    PATIENCE_MOST = 3,
    PATIENCE_NONE = PATIENCE_MOST + 1,
};

struct large_site {
    uintptr_t word;                /* of the place; 0: the number is free. Does not change once it is set */
    uint64_t requests;
    uint64_t bytes;                /* requested */
    size_t least;                  /* of one request; 0: none yet */
    size_t most;
    uint64_t frees;
    uint64_t remote_frees;         /* of them, by other threads than had requested the blocks */
    uint32_t lifetimes[SITE_TIMES];
    uint32_t waits[SITE_TIMES];    /* of trials, until they were taken again */
    uint32_t unwanted;             /* trials that nobody wanted for all of their time */
    uint32_t patience;             /* its blocks are kept 2^patience times as long as others of their size; PATIENCE_NONE: not */
} ALIGNED(64);

/* All of them, by number, or NULL: there are none. Set once, with release. */
extern HIDDEN struct large_site *large_sites;

/* How many are kept in another way than others. */
extern HIDDEN uint32_t large_sites_special;

/* To touch such a block costs more than any look. */
#define SITE_LOOKED_LEAST (4 * MIB)

/* Is it the n-th request whose site is looked at? One in 16 is, at distances that no regular program has for long; and all large
 * ones, of which there are few, and whose memory it is that lies idle. */
ALWAYS_INLINE bool site_is_turn(uint64_t n, size_t size)
{
    return (uint32_t)n * 0x9e3779b1u >> 28 == 0 || size >= SITE_LOOKED_LEAST;
}

/* Does the learner look at sites? */
ALWAYS_INLINE bool large_site_is_learned(void)
{
    return load_relaxed(&policy.learn) != LEARN_OFF && (load_relaxed(&policy.learn_parts) & LEARN_SITES) != 0;
}

ALWAYS_INLINE size_t site_mean_bytes(const struct large_site *site)
{
    return (size_t)(load_relaxed(&site->bytes) / max_size(load_relaxed(&site->requests), 1));
}

/* Which of SITE_TIMES a time is in; all times from site_time_least on are. */
ALWAYS_INLINE unsigned site_time(uint64_t ms)
{
    return ms == 0 ? 0 : (unsigned)min_size(log2_floor(ms) + 1, SITE_TIMES - 1);
}

ALWAYS_INLINE uint64_t site_time_least(unsigned time)
{
    return time == 0 ? 0 : (uint64_t)1 << (time - 1);
}

/* The site has requested the block, which has none yet, with so many bytes. */
void site_note_request(struct large *block, uint32_t site, size_t size);

/* It was freed: sets its patience, and whether it is a trial. */
void site_note_free(struct large *block);

/* It is taken again: it has no site any more. */
void site_forget(struct large *block);

/* A trial was given up. */
void site_note_unwanted(const struct large *block);

#endif
