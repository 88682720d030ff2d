/*
 * What the door has done for one heap, since its birth. Written by whoever works on the heap, as the heap itself; read by anyone,
 * a moment old. The texts that explain each to users are in api/metrics_table.h.
 */
#ifndef HAK_HEAP_COUNTS_H
#define HAK_HEAP_COUNTS_H

#include <stdint.h>

#include "base/atomic.h"
#include "config/size_class.h"

enum heap_count {
    /* Stages of a refill: the first that has blocks serves it, so each has been passed over as often as those after it have
     * served. */
    COUNT_BY_MAIL,      /* no refill: blocks that others had freed were there */
    COUNT_BY_CURRENT,   /* the slab that served the last one */
    COUNT_BY_PARTIAL,   /* the fullest of the others */
    COUNT_BY_ADOPTED,   /* one of an idle heap */
    COUNT_BY_NEW,       /* a new one */
    COUNT_NOT_SERVED,   /* there was no memory */
    COUNT_FROM_STOCK,   /* requests for a slab's units that the heap's stock served */

    COUNT_FLUSHED,      /* blocks that left full magazines */
    COUNT_SENT,         /* blocks, to other heaps */
    COUNT_POSTED,       /* letters */
    COUNT_RECEIVED,     /* blocks, of this heap or to be forwarded */
    COUNT_FORWARDED,    /* of them, those whose slab was another heap's by then */

    COUNT_LARGE,        /* blocks */
    COUNT_LARGE_FREED,
    COUNT_OTHER_FREED,  /* guarded, sampled and checked blocks */
    COUNT_DEFERRED,     /* frees by signal handlers that had interrupted the door */

    COUNT_HEARTBEATS,
    COUNT_TRIMMED,      /* magazines that were idle, and gave everything back */
    COUNT_HOLE_BYTES,   /* given back within slabs, in sum */
    COUNT_EMPTIED,      /* how often somebody else has emptied this heap */
    HEAP_COUNTS,
};

struct heap_counts {
    uint64_t of[HEAP_COUNTS];
    uint64_t refills[SIZE_CLASSES];
    uint64_t flushes[SIZE_CLASSES];
    uint64_t large[SIZE_BINS]; /* requests */
    uint32_t slabs[SIZE_CLASSES]; /* that the heap has now */
};

#endif
