#include "api/stats.h"

#include <errno.h>
#include <string.h>

#include "api/stats_file.h"
#include "arena/arena.h"
#include "arena/meta.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "check/run.h"
#include "heap/absent.h"
#include "heap/door.h"
#include "heap/fork.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/shelf.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "observe/profile_slabs.h"
#include "span/limit.h"
#include "span/span.h"

void class_use_add(struct class_use *use, const struct heap *heap, unsigned class)
{
    size_t cached = magazine_blocks(heap, class);
    size_t taken = load_relaxed(&heap->shelf[class].blocks_out);
    size_t there = (size_t)load_relaxed(&heap->counts->slabs[class]) * load_relaxed(&size_classes[class].blocks);
    use->cached += cached;
    use->in_slabs += there > taken ? there - taken : 0;
    use->out += taken;
}

struct class_use class_use_sum(unsigned class)
{
    struct class_use use = {0};
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        class_use_add(&use, heap, class);
    return use;
}

ptrdiff_t class_use_live(const struct class_use *use)
{
    return (ptrdiff_t)(use->out - use->cached);
}

static void add_classes(struct hak_stats *stats)
{
    ptrdiff_t blocks = 0;
    ptrdiff_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        struct class_use use = class_use_sum(class);
        blocks += class_use_live(&use);
        bytes += class_use_live(&use) * size_class_bytes(class);
        stats->cached_bytes += use.cached * size_class_bytes(class);
    }
    stats->small_blocks += above_zero(blocks);
    stats->small_bytes += above_zero(bytes);
}

static void add_heap(struct hak_stats *stats, const struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        stats->refills += load_relaxed(&heap->counts->refills[class]);
        stats->flushes += load_relaxed(&heap->counts->flushes[class]);
    }
    stats->slab_free_bytes += shelf_free_bytes(heap);
    stats->hole_bytes += load_relaxed(&heap->hole_bytes);
    stats->requested_bytes += heap_requested(heap);
    stats->purged_bytes += load_relaxed(&heap->counts->of[COUNT_HOLE_BYTES]);
}

static void read(void *argument)
{
    struct hak_stats *stats = argument;
    struct span_stats span;
    struct large_stats large;
    span_stats(&span);
    large_stats(&large);
    add_classes(stats);
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        add_heap(stats, heap);
    struct run_counts checked = run_counts();
    stats->small_blocks += checked.blocks;
    stats->small_bytes += checked.bytes;
    stats->metadata_bytes = load_relaxed(&meta_bytes);
    struct slabs_counts sampled = slabs_counts();
    stats->small_blocks += sampled.blocks;
    stats->small_bytes += sampled.bytes;
    stats->reserved_bytes = span.reserved_bytes;
    stats->committed_bytes = span.committed_bytes + stats->metadata_bytes;
    stats->large_blocks = large.live_blocks;
    stats->large_bytes = large.live_bytes;
    stats->bigcache_bytes = bigcache_bytes();
    stats->dirty_bytes = span.dirty_bytes;
    size_t bound = limit_held();
    size_t absent = absent_bytes();
    stats->held_bytes = bound > absent ? bound - absent : 0;
    stats->purged_bytes += span.purged_bytes;
}

/* Not in a signal handler that has interrupted its own thread while that holds a lock: the sums take locks. */
static bool may_read(void)
{
    return load_acquire(&arena.base) != NULL && !fork_holds_any_lock();
}

void stats_read(struct hak_stats *stats)
{
    *stats = (struct hak_stats){0};
    if (may_read())
        door_visit(read, stats);
}

bool stats_next_heap(struct heap_free *free)
{
    const struct heap *heap = free->at != NULL ? free->at->next : life_heaps();
    if (heap == NULL)
        return false;
    *free = (struct heap_free){.at = heap, .number = heap->number};
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        free->cached_blocks[class] = magazine_blocks(heap, class);
        free->cached_bytes += free->cached_blocks[class] * size_class_bytes(class);
    }
    free->free_bytes = shelf_free_bytes(heap);
    free->slab_bytes = (load_relaxed(&heap->units) << UNIT_SHIFT) - load_relaxed(&heap->hole_bytes);
    return true;
}

static void read_resident(void *argument)
{
    *(size_t *)argument = span_resident_bytes();
}

size_t stats_resident_bytes(void)
{
    size_t bytes = 0;
    if (may_read())
        door_visit(read_resident, &bytes);
    return bytes;
}

int hak_stats_get(struct hak_stats *stats, size_t bytes)
{
    struct hak_stats now;
    if (stats == NULL || bytes == 0)
        return EINVAL;
    if (fork_holds_any_lock())
        return EAGAIN;
    stats_read(&now);
    memset(stats, 0, bytes);
    memcpy(stats, &now, min_size(bytes, sizeof now));
    return 0;
}

struct wish {
    const char *path;
    int result;
};

static void write_file(void *argument)
{
    struct wish *wish = argument;
    wish->result = stats_write(wish->path, false);
}

int hak_stats_write(const char *path)
{
    struct wish wish = {.path = path};
    if (path == NULL)
        return EINVAL;
    if (fork_holds_any_lock())
        return EAGAIN;
    door_visit(write_file, &wish);
    return wish.result;
}
