/* Holes in slabs: the part of shelf.h that gives pages back. */
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/relief.h"
#include "heap/shelf.h"
#include "span/huge.h"
#include "span/limit.h"

static size_t purge(struct heap *heap, struct slab *slab)
{
    size_t bytes = slab_purge_holes(slab);
    slab->heat = SLAB_COLD;
    owner_add(&heap->counts->of[COUNT_HOLE_BYTES], bytes);
    shelf_note_holes(heap, bytes);
    return bytes;
}

/* Has its superslab become a huge page since the slab last knew which of its pages are absent? None is, then. */
static bool is_filled(const struct slab *slab)
{
    return slab->collapses != huge_collapses_at(slab->base);
}

void shelf_note_taken(struct heap *heap, const struct slab *slab, size_t bytes)
{
    shelf_note_holes(heap, -bytes);
    if (is_filled(slab)) {
        huge_counts_again(slab->base, bytes);
        return;
    }
    limit_note_filled(bytes);
    relief_note(heap);
}

void shelf_know_absent(struct heap *heap, struct slab *slab)
{
    if (!is_filled(slab))
        return;
    size_t bytes = slab_absent_bytes(slab);
    slab->absent = 0;
    slab->collapses = huge_collapses_at(slab->base);
    shelf_note_holes(heap, -bytes);
    huge_counts_again(slab->base, bytes);
}

/* In a huge page few holes are not worth what it saves. */
static bool is_left_whole(const struct slab *slab)
{
    return slab->heat == SLAB_COLD || slab->free <= slab->blocks / HUGE_WHOLE_PART || !slab_has_holes(slab);
}

static size_t look_at(struct heap *heap, struct slab *slab, bool by_age)
{
    bool huge = huge_is_at(slab->base);
    if (slab->heat == SLAB_HOT && by_age) {
        slab->heat = SLAB_COOL;
        return 0;
    }
    if (huge ? is_left_whole(slab) : slab->heat == SLAB_COLD && !is_filled(slab))
        return 0;
    if (huge)
        huge_split_at(slab->base);
    shelf_know_absent(heap, slab);
    return purge(heap, slab);
}

static size_t look_at_class(struct heap *heap, unsigned class, bool by_age)
{
    struct shelf *shelf = &heap->shelf[class];
    size_t bytes = shelf->current != NULL ? look_at(heap, shelf->current, by_age) : 0;
    for (int bucket = 0; bucket < SLAB_BUCKETS; bucket++)
        for (struct list_node *node = shelf->partial[bucket].first; node != NULL && !lock_is_wanted(&heap->lock);
             node = node->next)
            bytes += look_at(heap, LIST_ENTRY(node, struct slab, link), by_age);
    return bytes;
}

/* A hole in a huge page would split it: not while the program runs. */
size_t shelf_purge_cool(struct heap *heap, unsigned class)
{
    return policy.huge == HUGE_ON ? 0 : look_at_class(heap, class, true);
}

size_t shelf_purge_all(struct heap *heap)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        bytes += look_at_class(heap, class, false);
    return bytes;
}

size_t shelf_out_bytes(const struct heap *heap)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        bytes += (size_t)load_relaxed(&heap->shelf[class].blocks_out) * size_class_bytes(class);
    return bytes;
}

size_t shelf_free_bytes(const struct heap *heap)
{
    size_t bytes = load_relaxed(&heap->units) << UNIT_SHIFT;
    size_t used = load_relaxed(&heap->hole_bytes) + shelf_out_bytes(heap);
    return bytes > used ? bytes - used : 0;
}
