/* What the span layer says, for tests of the layers above it. */
#ifndef HAK_TEST_SPANS_H
#define HAK_TEST_SPANS_H

#include "span/span.h"

/* Bytes in runs. */
static inline size_t span_used_bytes(void)
{
    struct span_stats stats;
    span_stats(&stats);
    return stats.used_bytes;
}

#endif
