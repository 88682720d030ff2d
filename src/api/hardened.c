/*
 * The hot functions of the hardened library: seals, zeroing and delay around the push and pop of the others.
 *
 *   hardened_malloc ─▶ hot_pop_of ─▶ seal_hot_live       a hit
 *          │                │              └──▶ malloc_refused    ends the process
 *          ├── no block ────┴──▶ malloc_at_door ─▶ door, seal_live
 *          └── nothing, or a large block ─▶ malloc_unsealed
 *   hardened_free ──▶ seal_hot_free ─▶ delay_hot_exchange ─▶ hot_push    a hit
 *          │                                                    └──▶ door_free
 *          └── all else ─▶ free_otherwise ─▶ seal_size, seal_free, delay_exchange; or the door
 *
 * All but the two are out of line, and called last, so that a hit saves hardly any registers.
 *
 * Instructions of a hit: 160 a pair of up to 56 bytes, and 16 for each 64 more (docs/decisions/0025-the-hardened-library.md).
 */
#include "api/hot.h"
#include "heap/delay.h"
#include "heap/keeper.h"
#include "heap/report.h"
#include "heap/seal_hot.h"

_Static_assert(SEAL_HOT_MOST <= DELAY_ALL_SLOTS, "what is freed here waits among DELAY_SLOTS");

/* A keeper that has come since the caller looked takes the seal for the program's, and is asked anew. */
static COLD void *of_keeper(void *block, size_t size, void *(*door)(size_t))
{
    door_free_as(block, (struct freeing){.family = FAMILY_UNKNOWN, .size = SIZE_UNKNOWN});
    return door(size);
}

/* Keepers and guarded samples have seals of their own kind. While there is a keeper requests come here, as soon as the thread's
 * heap is closed. */
static NOINLINE void *malloc_at_door(size_t size, void *(*door)(size_t))
{
    if (UNLIKELY(keeper_now() != NULL))
        return door(size);
    void *block = door(size + SEAL_BYTES);
    uintptr_t tag = arena_tag(block);
    if (LIKELY(tag >= TAG_KINDS))
        seal_live(block, tag % SIZE_CLASSES, size);
    return LIKELY(tag != TAG_CHECKED) ? block : of_keeper(block, size, door);
}

/* Blocks of nothing have no seal, and large ones a closed page. Where a keeper has come and the heap is still open, blocks in
 * magazines have a seal, that of a free one: the door is asked, and charged as by hot_pop. */
static FRAGILE NOINLINE void *malloc_unsealed(size_t size, void *(*door)(size_t))
{
    bool zero;
    if (UNLIKELY(keeper_now() != NULL)) {
        if (size <= SMALL_MAX)
            (void)owner_subtract(&view_load()->budget, (int64_t)size);
        return door(size);
    }
    if (size != 0)
        return door_malloc_large(size, 1, &zero);
    void *block = hot_pop(SEAL_BYTES, door);
    return LIKELY(arena_tag(block) != TAG_CHECKED) ? block : of_keeper(block, size, door);
}

/* What was popped was written to. */
static COLD void *malloc_refused(void *block, size_t size)
{
    seal_live(block, arena_tag(block) % SIZE_CLASSES, size);
    return block;
}

static inline void *no_door(size_t size)
{
    (void)size;
    return NULL;
}

FRAGILE void *hardened_malloc(size_t size, void *(*door)(size_t))
{
    if (UNLIKELY(size - 1 >= SEALED_MAX))
        return malloc_unsealed(size, door);
    size_t class = size_class_of(size + SEAL_BYTES);
    void *block = hot_pop_of(class, size, view_load(), no_door);
    if (UNLIKELY(block == NULL))
        return malloc_at_door(size, door);
    if (UNLIKELY(!seal_hot_live(block, size_classes[class].size, size)))
        return malloc_refused(block, size);
    return block;
}

/* What was asked for, which the caller may say. */
static size_t asked_size(const void *block, unsigned class, size_t said)
{
    size_t asked = seal_size(block, class, FAULT_DOUBLE_FREE);
    if (UNLIKELY(said != SIZE_UNKNOWN && said != asked))
        report_pointer(FAULT_OTHER_SIZE, block);
    return asked;
}

/* A block that is older than the keeper, whose way to its slab leads by no seal any more. One that is free there is refused there. */
static COLD void verify_from_before(const void *block, unsigned class, size_t size)
{
    const struct slab *slab = arena_span(block);
    if (!slab_holds(slab, block) || !slab_is_free(slab, block))
        (void)asked_size(block, class, size);
}

static FRAGILE NOINLINE void free_otherwise(void *block, size_t size, const struct hot_way *way)
{
    uintptr_t tag = arena_tag(block);
    unsigned class = tag % SIZE_CLASSES;
    if (UNLIKELY(tag < TAG_KINDS || keeper_now() != NULL)) {
        if (tag >= TAG_KINDS)
            verify_from_before(block, class, size);
        way->door(block, way->family, size);
        return;
    }
    seal_free(block, class, asked_size(block, class, size));
    if (class == ZERO_CLASS) { /* that has no seal: its slab knows whether it is free */
        door_free(block);
        return;
    }
    struct view *view = view_load();
    if (view->heap != NULL)
        block = delay_exchange(view->heap, class, block);
    if (block != NULL && UNLIKELY(!hot_push(view_load(), block)))
        door_free(block);
}

/* To the magazine goes the block that waited longer. */
ALWAYS_INLINE FRAGILE void free_by(void *block, size_t size, const struct hot_way *way)
{
    struct view *view = view_load();
    uintptr_t words = arena_words(block);
    if (UNLIKELY(words >= load_relaxed(&arena.limit))) {
        way->door(block, way->family, size);
        return;
    }
    uintptr_t class = load_dependent(arena_tag_at(words)) ^ (uintptr_t)view;
    if (UNLIKELY(class >= SIZE_CLASSES || !seal_hot_free(block, size_classes[class].size, size))) {
        free_otherwise(block, size, way);
        return;
    }
    void *waited = delay_hot_exchange(delay_of(LIST_ENTRY(view, struct heap, view)), class, block);
    if (UNLIKELY(!hot_push(view, waited)))
        door_free(waited); /* NULL, too */
}

/* Most programs hardly call anything else: it has no size to keep in a register. */
FRAGILE void hardened_free(void *block)
{
    static const struct hot_way way = {FAMILY_MALLOC, hot_door_free};
    free_by(block, SIZE_UNKNOWN, &way);
}

FRAGILE void hardened_free_by(void *block, size_t size, const struct hot_way *way)
{
    free_by(block, size, way);
}
