/*
 * Large blocks: more than 32 KiB, or aligned to more than a class can be. Each is a run of units with a
 * record out of line; its first unit is tagged TAG_LARGE.
 *
 * Any thread. A block belongs to whoever holds its pointer, as in malloc's contract; two threads that free
 * the same block meet in an atomic exchange of the tag, and the second is told.
 */
#ifndef HAK_LARGE_LARGE_H
#define HAK_LARGE_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/shard.h"

struct sample;

struct large {
    char *base;
    size_t units;
    size_t bytes;          /* that the user may use: what was asked for, rounded up to 4 KiB */
    size_t untouched;      /* at its end, pages that were new and that no user could use: they have no memory */
    struct list_node link; /* BigCache: among blocks of its bin */
    struct list_node age;  /* BigCache: among those that are kept for as long, newest first */
    uint64_t freed_ms;     /* the last time, by clock_now_ms; UINT64_MAX: it is new */
    size_t reach;          /* hardened library: the bytes that may be touched; 0: none (fenced.h) */
    uint32_t rested_at;    /* the same, in the BigCache: after so many frees in its shard it may be lent */
    uint8_t lease;         /* BigCache: which of these it is among */
    uint8_t patience;      /* it is kept 2^patience times as long as others of its size (site.h) */
    bool is_trial;         /* the same */
    bool zero;             /* freed, and reads as zero */
    bool moved;            /* its pages came by mremap: its mapping is of its own */
    uint8_t collapses;     /* of the superslab at its end, when nothing `untouched` had memory (span/huge.h) */
    uint32_t site;         /* whose it is, or was (site.h); SITE_NONE: nobody knows */
    uint32_t kept_for;     /* BigCache: the site that takes it first; if it has a site, there is one */
    uint64_t born_ms;      /* if it has a site: when it was requested, */
    uintptr_t requester;   /* and by which thread */
    struct sample *sample; /* the profiler's, mostly NULL; whose the block is sets it */
};

enum large_verdict { LARGE_FINE, LARGE_NOT_A_BLOCK, LARGE_DOUBLE_FREE, LARGE_OVERRUN };

/* Live blocks. Each may be counted out elsewhere than it was counted in: only the sums mean something. */
struct large_live {
    size_t blocks;
    size_t bytes;     /* usable */
    size_t untouched; /* of kept blocks, too */
} ALIGNED(SHARD_ALIGN);

/* The heaps with the lowest numbers have one each, that only their owners write: a locked instruction for each count would be a third
 * of what a block that the BigCache lends costs. The others, and threads without a heap, share the first SHARDS. */
enum { LARGE_LIVE_OWN = 64 };

extern HIDDEN struct large_live large_live[SHARDS + LARGE_LIVE_OWN];

/* Of the heap of that number; NULL: it shares. */
ALWAYS_INLINE struct large_live *large_live_of(uint32_t number)
{
    return number < LARGE_LIVE_OWN ? &large_live[SHARDS + number] : NULL;
}

/* A block of at least `size` bytes (at most PTRDIFF_MAX), aligned to `align` (a power of two) and at least
 * to a unit, for a site (site.h). *zero says whether it reads as zero. Counted in `live`, which is the caller's own, or NULL.
 * NULL: out of memory. */
void *large_alloc_at(size_t size, size_t align, uint32_t site, struct large_live *live, bool *zero);

ALWAYS_INLINE void *large_alloc(size_t size, size_t align, bool *zero)
{
    return large_alloc_at(size, align, 0, NULL, zero);
}

/* Makes the first `bytes` of the live block at p, or a little more, read as zero; what of it is not in memory is not written. */
void large_clear(void *p, size_t bytes);

/* What a block was that has been freed. */
struct large_freed {
    size_t bytes;          /* that its user could use */
    struct sample *sample;
};

/* Frees the block at p, whose unit is tagged as large. `live`: as above. */
enum large_verdict large_free(void *p, struct large_live *live, struct large_freed *freed);

/* The record of the live block at p, or NULL if none starts there. */
struct large *large_find(const void *p);

/* When the live block at p was freed the last time; UINT64_MAX: it is new. */
ALWAYS_INLINE uint64_t large_freed_ms(const void *p)
{
    const struct large *block = arena_span(p);
    return block->freed_ms;
}

/* Changes the usable size: in place, by moving the pages, or by a copy to where pages are warm. Returns the block's address
 * afterwards, NULL if only a copy to another block would do (the block is then unchanged). */
void *large_resize(struct large *block, size_t size);

/* Gives back the units of blocks that the BigCache has kept since before `before_ms` (UINT64_MAX: all), or
 * that exceed its budget. */
void large_evict_before(uint64_t before_ms);

/* All that are kept now; not what others free meanwhile. */
void large_evict_all(void);

/* Gives back those that were kept for as long as policy says for their sizes, some of many only, and what exceeds the budget. `now_ms` is a
 * time of clock_now_ms. */
void large_evict_old(uint64_t now_ms);

/* A run of so many bytes was taken, and nobody has touched it yet. If the process holds more than ever by that, what it holds for
 * nothing goes back (span/growth.h): pages of free units, then blocks that the BigCache keeps. */
void large_offset_growth(size_t bytes);

struct large_stats {
    size_t live_blocks;
    size_t live_bytes; /* usable */
    size_t untouched_bytes;
};

void large_stats(struct large_stats *stats);

#endif
