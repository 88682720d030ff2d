#include "heap/absent.h"

#include "arena/meta.h"
#include "base/atomic.h"
#include "heap/life.h"
#include "large/large.h"
#include "span/huge.h"

size_t absent_fences;

size_t absent_bytes(void)
{
    struct large_stats large;
    large_stats(&large);
    size_t bytes = large.untouched_bytes + meta_absent() + load_relaxed(&absent_fences);
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        bytes += load_relaxed(&heap->hole_bytes) + ((size_t)load_relaxed(&heap->stock_clean) << UNIT_SHIFT);
    size_t filled = load_relaxed(&huge_filled);
    return bytes > filled ? bytes - filled : 0;
}
