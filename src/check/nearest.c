#include "check/nearest.h"

#include "arena/arena.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/fmt.h"
#include "heap/heap.h"
#include "heap/magazine.h"
#include "large/large.h"
#include "slab/slab.h"

/* The start of a large block is looked for over so many units before the address: 4 GiB. */
enum { UNITS_BACK = (4 * GIB) >> UNIT_SHIFT };

static bool is_cached(const struct heap *heap, unsigned class, const void *block)
{
    void **slots = load_relaxed(&heap->shelf[class].slots);
    size_t count = magazine_count(heap, class);
    if (load_relaxed(&heap->shelf[class].slots) != slots) /* its owner is at work */
        return false;
    for (size_t slot = count; slot > 0; slot--)
        if (load_relaxed(&slots[slot]) == block)
            return true;
    return false;
}

static bool is_free(const struct slab *slab, size_t index)
{
    return (load_relaxed(&slab->bitmap[index / 64]) >> index % 64 & 1) != 0;
}

/* Of a slab with this tag: a heap's, or the profiler's, which no magazine has blocks of. */
static bool is_live(uintptr_t tag, const struct slab *slab, size_t index)
{
    const struct heap *heap = (const struct heap *)(tag - tag % SIZE_CLASSES);
    if (is_free(slab, index))
        return false;
    return tag == TAG_SAMPLED || !is_cached(heap, slab->class, slab->base + index * slab->stride);
}

static size_t describe_small(uintptr_t tag, const struct slab *slab, uintptr_t address, char *text, size_t capacity)
{
    uint32_t stride = load_relaxed(&slab->stride);
    if (stride == 0) /* the slab is being given up by a thread that runs on */
        return fmt_print(text, capacity, "in free memory of the heap");
    size_t offset = address - (uintptr_t)slab->base;
    size_t index = offset / stride;
    const char *block = slab->base + index * stride;
    if (index >= slab->blocks)
        return fmt_print(text, capacity, "in the unused end of a slab of blocks of %u B", stride);
    return fmt_print(text, capacity, "%zu bytes into a %s block of %u B at %p", offset % stride,
                     is_live(tag, slab, index) ? "live" : "freed", stride, block);
}

static size_t describe_large(const struct large *block, uintptr_t address, char *text, size_t capacity)
{
    size_t offset = address - (uintptr_t)block->base;
    if (offset >= block->bytes)
        return fmt_print(text, capacity, "%zu bytes behind the end of a live block of %zu B at %p", offset - block->bytes,
                         block->bytes, block->base);
    return fmt_print(text, capacity, "%zu bytes into a live block of %zu B at %p", offset, block->bytes, block->base);
}

/* The large block that covers a unit which is not that of a slab; NULL: none does. */
static const struct large *large_around(size_t unit)
{
    for (size_t back = 0; back <= unit && back < UNITS_BACK; back++) {
        uintptr_t tag = load_acquire(&arena.tags[unit - back]);
        if (tag == TAG_NONE || tag == TAG_LARGE_GONE)
            continue;
        const struct large *block = tag == TAG_LARGE ? load_relaxed(&arena.spans[unit - back]) : NULL;
        return block != NULL && back < block->units ? block : NULL;
    }
    return NULL;
}

size_t nearest_describe(uintptr_t address, char *text, size_t capacity)
{
    uintptr_t words = arena_words((const void *)align_down(address, 8));
    if (words >= load_acquire(&arena.limit))
        return fmt_print(text, capacity, "not in the heap");
    size_t unit = arena_unit_of_words(words);
    uintptr_t tag = load_acquire(&arena.tags[unit]);
    const void *span = load_relaxed(&arena.spans[unit]);
    if (arena_is_slab(tag) && span != NULL)
        return describe_small(tag, span, address, text, capacity);
    const struct large *block = large_around(unit);
    if (block != NULL)
        return describe_large(block, address, text, capacity);
    if (tag == TAG_LARGE_KEPT || tag == TAG_LARGE_GONE)
        return fmt_print(text, capacity, "in the first %zu KiB of a freed large block", UNIT_SIZE / KIB);
    return fmt_print(text, capacity, "in free memory of the heap");
}
