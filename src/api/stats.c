#include "api/stats.h"

#include <string.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "check/run.h"
#include "heap/door.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "observe/profile_slabs.h"
#include "span/limit.h"
#include "span/span.h"

static void add_heap(struct memory_stats *stats, const struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        size_t size = size_classes[class].size;
        size_t cached = magazine_count(heap, class);
        size_t out = load_relaxed(&heap->shelf[class].blocks_out);
        /* A magazine may hold blocks that left another heap's slabs before those were adopted. */
        size_t live = out > cached ? out - cached : 0;
        stats->small_blocks += live;
        stats->small_bytes += live * size;
        stats->cached_bytes += cached * size;
    }
    stats->hole_bytes += load_relaxed(&heap->hole_bytes);
    stats->from_stock += load_relaxed(&heap->from_stock);
}

static void read(void *argument)
{
    struct memory_stats *stats = argument;
    struct span_stats span;
    struct large_stats large;
    struct bigcache_counts kept = bigcache_counts();
    span_stats(&span);
    large_stats(&large);
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        add_heap(stats, heap);
    struct run_counts checked = run_counts();
    stats->small_blocks += checked.blocks;
    stats->small_bytes += checked.bytes;
    struct slabs_counts sampled = slabs_counts();
    stats->small_blocks += sampled.blocks;
    stats->small_bytes += sampled.bytes;
    stats->reserved_bytes = span.reserved_bytes;
    stats->committed_bytes = span.committed_bytes + meta_committed();
    stats->large_blocks = large.live_blocks;
    stats->large_bytes = large.live_bytes;
    stats->bigcache_bytes = bigcache_bytes();
    stats->dirty_bytes = span.dirty_bytes;
    stats->held_bytes = limit_held();
    stats->from_bigcache = kept.served;
    stats->bigcache_waits = kept.waits;
    memcpy(stats->from_span, span.served, sizeof span.served);
    stats->span_waits = span.waits;
}

void stats_read(struct memory_stats *stats)
{
    *stats = (struct memory_stats){0};
    if (load_acquire(&arena.base) != NULL)
        door_visit(read, stats);
}

static void read_resident(void *argument)
{
    *(size_t *)argument = span_resident_bytes();
}

size_t stats_resident_bytes(void)
{
    size_t bytes = 0;
    if (load_acquire(&arena.base) != NULL)
        door_visit(read_resident, &bytes);
    return bytes;
}
