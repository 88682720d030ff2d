/*
 * The two hot functions. Nothing but this runs when a magazine has what is wanted; everything else is behind
 * the door (heap/door.h), which opens when
 *   - the magazine is empty (malloc) or full (free), or the byte budget is spent;
 *   - the pointer is not a block of this thread's heap: another's, large, NULL, misaligned, not ours;
 *   - the block freed is the one freed last (a double free);
 *   - the thread's view is closed, and so every bin is empty and full at once.
 *
 * Budget on x86-64, hit path, function prologue to ret (tests/py/test_budget.py):
 *   malloc  20 instructions     free  26 instructions     no call, no push, no locked instruction
 *
 * To see operations, bring them to the door. Add nothing here.
 */
#ifndef HAK_API_HOT_H
#define HAK_API_HOT_H

#include <stddef.h>

#include "arena/arena.h"
#include "heap/door.h"
#include "heap/view.h"

/* Slots are read and written with relaxed atomics, because a thief may take what lies below the top; the bin
 * is the owner's alone. */
ALWAYS_INLINE void *hot_malloc(size_t size)
{
    if (UNLIKELY(size > SMALL_MAX))
        return door_malloc(size);
    struct view *view = view_load();
    size_t class = size_class_of(size);
    if (UNLIKELY(owner_subtract(&view->budget, (int64_t)size) < 0))
        return door_malloc(size);
    struct bin *bin = view_bin(view, class);
    void **top = bin->top;
    void *block = load_relaxed(top);
    if (UNLIKELY(block == NULL))
        return door_malloc(size);
    store_before_barrier(&bin->top, top - 1);
    return block;
}

ALWAYS_INLINE void hot_free(void *block)
{
    struct view *view = view_load();
    uintptr_t words = arena_words(block);
    if (UNLIKELY(words >= load_relaxed(&arena.limit)))
        goto door;
    uintptr_t class = load_relaxed(&arena.tags[arena_unit_of_words(words)]) ^ (uintptr_t)view;
    if (UNLIKELY(class >= SIZE_CLASSES))
        goto door;
    struct bin *bin = view_bin(view, class);
    void **top = bin->top;
    if (UNLIKELY(top >= bin->end))
        goto door;
    if (UNLIKELY(load_relaxed(top) == block))
        goto door;
    store_relaxed(top + 1, block);
    store_before_barrier(&bin->top, top + 1);
    return;
door:
    door_free(block);
}

#endif
