/* Holes in slabs: the part of shelf.h that gives pages back. */
#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "config/policy.h"
#include "heap/relief.h"
#include "heap/shelf.h"
#include "span/huge.h"
#include "span/limit.h"

/* A look sees so many slabs for each millisecond since it was last continued: some 30 us of work if none of them is in a cache. To give
 * back holes costs as much as to see PURGE_SLABS. */
enum { SLABS_A_MS = 256, PURGE_SLABS = 8, MS_MOST = 100 };

/* For each slab that makes the heap larger than ever it sees so many, until it has given back so many times what that takes. */
enum { SLABS_A_SLAB = 256, OFFSETS = 2 };

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

/* In a huge page few holes are not worth what it saves. What it has filled since they were given back is not looked at by age: it would
 * be filled again. */
static bool is_left_whole(const struct slab *slab, bool by_age)
{
    bool is_done = slab->heat == SLAB_COLD && (by_age || !is_filled(slab));
    return is_done || slab->free <= slab->blocks / HUGE_WHOLE_PART || !slab_has_holes(slab);
}

static size_t look_at(struct heap *heap, struct slab *slab, bool by_age)
{
    bool huge = huge_is_at(slab->base);
    if (slab->heat == SLAB_HOT && by_age) {
        slab->heat = SLAB_COOL;
        return 0;
    }
    if (huge ? is_left_whole(slab, by_age) : slab->heat == SLAB_COLD && !is_filled(slab))
        return 0;
    if (huge)
        huge_split_at(slab->base);
    shelf_know_absent(heap, slab);
    return purge(heap, slab);
}

static bool is_over(const struct hole_look *look)
{
    return look->class >= SIZE_CLASSES;
}

static bool is_by_age(const struct hole_look *look)
{
    return look->record == 0;
}

void shelf_begin_look(struct heap *heap, uint64_t now_ms)
{
    struct hole_look *look = &heap->look;
    if (!is_over(look))
        return;
    look->class = (look->class + 1) % LOOKS_PER_DELAY;
    look->ms = now_ms;
}

/* The slab that the look comes to next: of each class those of its lists, the emptiest first, and then the current one. NULL: there is
 * none, and the look is over. */
static struct slab *next_of_look(const struct heap *heap, struct hole_look *look)
{
    while (look->next == NULL) {
        if (is_over(look))
            return NULL;
        const struct shelf *shelf = &heap->shelf[look->class];
        if (look->lists < SLAB_BUCKETS) {
            look->next = shelf->partial[SLAB_BUCKETS - ++look->lists].first;
            continue;
        }
        look->lists = 0;
        look->class += is_by_age(look) ? LOOKS_PER_DELAY : 1;
        if (shelf->current != NULL)
            return shelf->current;
    }
    struct slab *slab = LIST_ENTRY(look->next, struct slab, link);
    look->next = slab->link.next;
    return slab;
}

/* Until it has seen so many slabs, or given back so many bytes, or somebody wants heap.lock. */
static size_t walk(struct heap *heap, struct hole_look *look, int64_t slabs, size_t enough)
{
    struct slab *slab;
    size_t all = 0;
    while (slabs > 0 && all < enough && !lock_is_wanted(&heap->lock) && (slab = next_of_look(heap, look)) != NULL) {
        size_t bytes = look_at(heap, slab, is_by_age(look));
        slabs -= bytes > 0 ? PURGE_SLABS : 1;
        all += bytes;
    }
    return all;
}

/* The heap's own look. */
static size_t go_on(struct heap *heap, int64_t slabs, size_t enough)
{
    struct hole_look *look = &heap->look;
    size_t bytes = walk(heap, look, slabs, enough);
    if (is_over(look)) {
        if (heap->record < look->record)
            heap->record = look->record;
        look->record = 0;
    }
    return bytes;
}

/* How many slabs may be seen now. */
static int64_t slabs_due(struct hole_look *look, uint64_t now_ms)
{
    uint64_t ms = min_size(now_ms - look->ms + 1, MS_MOST);
    look->ms = now_ms;
    return (int64_t)(ms * SLABS_A_MS);
}

size_t shelf_purge_cool(struct heap *heap, uint64_t now_ms, size_t most)
{
    struct hole_look *look = &heap->look;
    /* A hole in a huge page would split it: by age alone not while the program runs. */
    if (is_over(look) || (policy.huge == HUGE_ON && is_by_age(look)))
        return 0;
    return go_on(heap, slabs_due(look, now_ms), most);
}

void shelf_offset(struct heap *heap, unsigned units, uint32_t record)
{
    struct hole_look *look = &heap->look;
    if (is_by_age(look)) { /* one that was begun is taken over */
        *look = (struct hole_look){.ms = clock_now_ms(), .record = record};
        heap->record = 0;
    }
    (void)go_on(heap, SLABS_A_SLAB, ((size_t)units << UNIT_SHIFT) * OFFSETS);
}

size_t shelf_purge_all(struct heap *heap)
{
    struct hole_look all = {.record = UINT32_MAX}; /* not by age; nobody's record */
    return walk(heap, &all, INT64_MAX, SIZE_MAX);
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
