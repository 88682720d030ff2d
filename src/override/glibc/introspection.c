/* The names that only glibc has: what a heap holds, and its parameters. Built where libc's headers have them. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "api/stats.h"
#include "base/bits.h"
#include "base/libc.h"
#include "hakmem.h"

/* glibc's parameters describe glibc's heap; none has a meaning here. 1 is success. (mallopt(3)) */
HAK_EXPORT int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 1;
}

/* To glibc they are mappings of their own, and in no other figure. */
static size_t without_large(const struct hak_stats *stats, size_t bytes)
{
    return bytes - min_size(bytes, stats->large_bytes);
}

HAK_EXPORT struct mallinfo2 mallinfo2(void)
{
    struct hak_stats stats;
    stats_read(&stats);
    size_t arena = without_large(&stats, stats.committed_bytes);
    return (struct mallinfo2){
        .arena = arena,
        .hblks = stats.large_blocks,
        .hblkhd = stats.large_bytes,
        .fsmblks = stats.cached_bytes,
        .uordblks = stats.small_bytes,
        .fordblks = arena - min_size(arena, stats.small_bytes),
        .keepcost = stats.bigcache_bytes + stats.dirty_bytes,
    };
}

/* The int fields wrap in large processes, as glibc's do. (mallinfo(3)) */
HAK_EXPORT struct mallinfo mallinfo(void)
{
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = (int)wide.arena,
        .hblks = (int)wide.hblks,
        .hblkhd = (int)wide.hblkhd,
        .fsmblks = (int)wide.fsmblks,
        .uordblks = (int)wide.uordblks,
        .fordblks = (int)wide.fordblks,
        .keepcost = (int)wide.keepcost,
    };
}

static void print_sizes(FILE *stream, const struct heap_free *heap)
{
    (void)fputs("<sizes>\n", stream);
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        uint32_t size = size_class_bytes(class);
        if (heap->cached_blocks[class] > 0)
            (void)fprintf(stream, "  <size from=\"%u\" to=\"%u\" total=\"%zu\" count=\"%zu\"/>\n", size, size,
                          heap->cached_blocks[class] * size, heap->cached_blocks[class]);
    }
    (void)fputs("</sizes>\n", stream);
}

static size_t cached_count(const struct heap_free *heap)
{
    size_t count = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        count += heap->cached_blocks[class];
    return count;
}

/* As glibc writes it: of free memory. "fast" is what magazines hold, "rest" what else is free, "mmap" live large blocks. */
HAK_EXPORT int malloc_info(int options, FILE *stream)
{
    if (options != 0) {
        errno = EINVAL;
        return -1;
    }
    struct hak_stats stats;
    struct heap_free heap = {.at = NULL};
    size_t cached = 0;
    stats_read(&stats);
    (void)fputs("<malloc version=\"1\">\n", stream);
    while (stats_next_heap(&heap)) {
        size_t count = cached_count(&heap);
        cached += count;
        (void)fprintf(stream, "<heap nr=\"%u\">\n", heap.number);
        print_sizes(stream, &heap);
        (void)fprintf(stream,
                      "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
                      "<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n"
                      "<system type=\"current\" size=\"%zu\"/>\n"
                      "</heap>\n",
                      count, heap.cached_bytes, heap.free_bytes, heap.slab_bytes);
    }
    int written = fprintf(stream,
                          "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
                          "<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n"
                          "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
                          "<system type=\"current\" size=\"%zu\"/>\n"
                          "<aspace type=\"total\" size=\"%zu\"/>\n"
                          "</malloc>\n",
                          cached, stats.cached_bytes, stats.slab_free_bytes + stats.bigcache_bytes + stats.dirty_bytes,
                          stats.large_blocks, stats.large_bytes, without_large(&stats, stats.held_bytes), stats.reserved_bytes);
    return written < 0 ? -1 : 0;
}

HAK_EXPORT void malloc_stats(void)
{
    struct hak_stats stats;
    stats_read(&stats);
    (void)fprintf(stderr,
                  "hakmem: small %zu blocks, %zu bytes; large %zu blocks, %zu bytes; cached %zu; BigCache %zu; "
                  "dirty %zu; held %zu; holes %zu; in memory %zu; committed %zu; reserved %zu bytes\n",
                  stats.small_blocks, stats.small_bytes, stats.large_blocks, stats.large_bytes, stats.cached_bytes,
                  stats.bigcache_bytes, stats.dirty_bytes, stats.held_bytes, stats.hole_bytes, stats_resident_bytes(),
                  stats.committed_bytes, stats.reserved_bytes);
    (void)fprintf(stderr,
                  "hakmem: requested %zu bytes; magazines refilled %zu times, flushed %zu times; given back %zu bytes\n",
                  stats.requested_bytes, stats.refills, stats.flushes, stats.purged_bytes);
}
