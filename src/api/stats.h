/* What the process holds, for mallinfo and malloc_info. Counts are exact while no other thread allocates. */
#ifndef HAK_API_STATS_H
#define HAK_API_STATS_H

#include <stddef.h>

struct memory_stats {
    size_t reserved_bytes;  /* address space of the heap */
    size_t committed_bytes; /* of it, usable; metadata included */
    size_t small_blocks;    /* live, of all size classes */
    size_t small_bytes;     /* in them */
    size_t cached_bytes;    /* free blocks in magazines */
    size_t large_blocks;    /* live */
    size_t large_bytes;     /* in them */
    size_t bigcache_bytes;  /* freed large blocks that are kept */
    size_t dirty_bytes;     /* free units that may hold pages */
    size_t held_bytes;      /* what counts for the limits (span/limit.h) */
};

void stats_read(struct memory_stats *stats);

#endif
