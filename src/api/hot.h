/*
 * The two hot functions. Nothing but this runs when a magazine has what is wanted; everything else is behind
 * the door (heap/door.h), which opens when
 *   - the magazine is empty (malloc) or full (free), or the byte budget is spent;
 *   - the pointer is not a block of this thread's heap: another's, large, NULL, misaligned, not ours;
 *   - the block freed is the one freed last (a double free);
 *   - the thread's view is closed, and so every magazine is empty and full at once; or it is a static one, which has no budget and
 *     no magazines: nothing behind the budget is read before the budget, or the tag, has said that it is another.
 *
 * Budget on x86-64, hit path, function prologue to ret (tests/py/test_budget.py):
 *   malloc  18 instructions     free  22 instructions     no call, no push, no locked instruction
 *
 * To see operations, bring them to the door. Add nothing here.
 */
#ifndef HAK_API_HOT_H
#define HAK_API_HOT_H

#include <stddef.h>

#include "arena/arena.h"
#include "heap/door.h"
#include "heap/view.h"

/* How a block is freed: by which functions of the language, and through which door. */
struct hot_way {
    enum family family;
    void (*door)(void *block, enum family family, size_t size);
};

/* What the hardened library does around the two (hardened.c). */
void *hardened_malloc(size_t size, void *(*door)(size_t));
void hardened_free(void *block);
void hardened_free_by(void *block, size_t size, const struct hot_way *way);

/* Slots are written with relaxed atomics, because a thief may take what lies below the top; the top and what lies above it is
 * the owner's alone. `class` has blocks of `size` bytes or more. */
ALWAYS_INLINE void *hot_pop_of(size_t class, size_t size, struct view *view, void *(*door)(size_t))
{
    if (UNLIKELY(owner_subtract(&view->budget, (int64_t)size) < 0))
        return door(size);
    void **top = view->top[class];
    void *block = load_relaxed(top);
    if (UNLIKELY(block == NULL))
        return door(size);
    PIN(class);
    store_before_barrier(&view->top[class], top - 1);
    return block;
}

ALWAYS_INLINE void *hot_pop(size_t size, void *(*door)(size_t))
{
    if (UNLIKELY(size > SMALL_MAX))
        return door(size);
    struct view *view = view_load();
    return hot_pop_of(size_class_of(size), size, view, door);
}

ALWAYS_INLINE void *hot_malloc_or(size_t size, void *(*door)(size_t))
{
    return HARDENED ? hardened_malloc(size, door) : hot_pop(size, door);
}

ALWAYS_INLINE void *hot_malloc(size_t size)
{
    return hot_malloc_or(size, door_malloc);
}

ALWAYS_INLINE void *hot_no_block(size_t size)
{
    (void)size;
    return NULL;
}

/* For a request of `size` bytes, a block of the class of `bytes`, which are as many at least (door_malloc_of). */
ALWAYS_INLINE void *hot_malloc_of(size_t bytes, size_t size, size_t align)
{
    void *block = hot_pop_of(size_class_of(bytes), size, view_load(), hot_no_block);
    return LIKELY(block != NULL) ? block : door_malloc_of(bytes, size, align);
}

/* False: nothing was done, the door must. */
ALWAYS_INLINE bool hot_push(struct view *view, void *block)
{
    uintptr_t words = arena_words(block);
    if (UNLIKELY(words >= load_in_place(&arena.limit)))
        return false;
    uintptr_t class = load_relaxed(arena_tag_at(words)) ^ (uintptr_t)view;
    if (UNLIKELY(class >= SIZE_CLASSES))
        return false;
    void **top = view->top[class];
    if (UNLIKELY(load_in_place(top + 1) == SLOT_FULL))
        return false;
    if (UNLIKELY(load_in_place(top) == block))
        return false;
    store_relaxed(top + 1, block);
    PIN(class);
    store_before_barrier(&view->top[class], top + 1);
    return true;
}

/* Of the size, if it is known, the hardened library makes sure. `way` is a constant. */
ALWAYS_INLINE void hot_free_by(void *block, size_t size, const struct hot_way *way)
{
    if (HARDENED)
        hardened_free_by(block, size, way);
    else if (UNLIKELY(!hot_push(view_load(), block)))
        way->door(block, way->family, size);
}

static inline void hot_door_free(void *block, enum family family, size_t size)
{
    (void)family;
    (void)size;
    door_free(block);
}

static inline void hot_door_free_as(void *block, enum family family, size_t size)
{
    door_free_as(block, (struct freeing){.family = family, .size = size});
}

ALWAYS_INLINE void hot_free(void *block)
{
    if (HARDENED)
        hardened_free(block);
    else if (UNLIKELY(!hot_push(view_load(), block)))
        door_free(block);
}

/* For callers that know more of the block. */
ALWAYS_INLINE void hot_free_sized(void *block, size_t size)
{
    static const struct hot_way way = {FAMILY_MALLOC, hot_door_free_as};
    hot_free_by(block, size, &way);
}

#endif
