/* Holes in slabs: the part of shelf.h that gives pages back. */
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/shelf.h"

static size_t purge(struct heap *heap, struct slab *slab)
{
    size_t bytes = slab_purge_holes(slab);
    slab->heat = SLAB_COLD;
    store_relaxed(&heap->hole_bytes, heap->hole_bytes + bytes);
    return bytes;
}

/* A hole in a huge page would split it: not while the program runs. */
static size_t look_at(struct heap *heap, struct slab *slab)
{
    if (policy.huge == HUGE_ON)
        return 0;
    if (slab->heat == SLAB_COOL)
        return purge(heap, slab);
    if (slab->heat == SLAB_HOT)
        slab->heat = SLAB_COOL;
    return 0;
}

size_t shelf_purge_cool(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->shelf[class];
    size_t bytes = shelf->current != NULL ? look_at(heap, shelf->current) : 0;
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = shelf->partial[bucket].first; node != NULL; node = node->next)
            bytes += look_at(heap, LIST_ENTRY(node, struct slab, link));
    return bytes;
}

static size_t purge_list(struct heap *heap, struct list *list)
{
    size_t bytes = 0;
    for (struct list_node *node = list->first; node != NULL && !lock_is_wanted(&heap->lock); node = node->next) {
        struct slab *slab = LIST_ENTRY(node, struct slab, link);
        if (slab->heat != SLAB_COLD)
            bytes += purge(heap, slab);
    }
    return bytes;
}

size_t shelf_purge_all(struct heap *heap)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++) {
        struct shelf *shelf = &heap->shelf[class];
        if (shelf->current != NULL && shelf->current->heat != SLAB_COLD)
            bytes += purge(heap, shelf->current);
        for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
            bytes += purge_list(heap, &shelf->partial[bucket]);
    }
    return bytes;
}

size_t shelf_free_bytes(const struct heap *heap)
{
    size_t bytes = load_relaxed(&heap->units) << UNIT_SHIFT;
    size_t used = load_relaxed(&heap->hole_bytes);
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        used += (size_t)load_relaxed(&heap->shelf[class].blocks_out) * size_classes[class].size;
    return bytes > used ? bytes - used : 0;
}
