/* What the process holds, for mallinfo and malloc_info. Counts are exact while no other thread allocates. */
#ifndef HAK_API_STATS_H
#define HAK_API_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "span/span.h"

struct memory_stats {
    size_t reserved_bytes;  /* address space of the heap */
    size_t committed_bytes; /* of it, usable; metadata included */
    size_t small_blocks;    /* live, of all size classes; in check mode of all sizes */
    size_t small_bytes;     /* in them */
    size_t cached_bytes;    /* free blocks in magazines */
    size_t large_blocks;    /* live */
    size_t large_bytes;     /* in them */
    size_t bigcache_bytes;  /* freed large blocks that are kept */
    size_t dirty_bytes;     /* free units that may hold pages */
    size_t held_bytes;      /* what counts for the limits (span/limit.h) */
    size_t hole_bytes;      /* of it, given back within slabs */

    /* Requests for units, by what served them. */
    uint64_t from_stock;    /* units that a heap has by it */
    uint64_t from_bigcache; /* a freed large block that was kept */
    uint64_t from_span[SPAN_STAGES];
    uint64_t span_waits;    /* how often a thread had to wait for the span lock */
    uint64_t bigcache_waits; /* the same for the BigCache's */
};

void stats_read(struct memory_stats *stats);

/* Bytes of the heap that are in memory: the kernel is asked, for each superslab. */
size_t stats_resident_bytes(void);

#endif
