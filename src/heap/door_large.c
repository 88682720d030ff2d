/* The door's way for large blocks. */
#include "heap/door.h"

#include <errno.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/atomic.h"
#include "config/policy.h"
#include "heap/budget.h"
#include "heap/door_steps.h"
#include "heap/fork.h"
#include "heap/profiler.h"
#include "heap/relief.h"
#include "heap/report.h"
#include "large/fenced.h"
#include "large/large.h"
#include "large/site.h"
#include "span/limit.h"

/* May the request be a sample of the profiler's? The budget is spent then. */
ALWAYS_INLINE bool may_be_sample(const struct heap *heap)
{
    return UNLIKELY(heap->view.budget < 0) && UNLIKELY(profiler_now() != NULL);
}

static COLD void sample(struct heap *heap, const void *p, size_t size, const struct os_frame *from)
{
    struct large *block = large_find(p);
    if (interrupt_holds_magazines(heap) || !budget_take_sample(heap) || block->sample != NULL)
        return;
    block->sample = profiler_now()->note(p, size, from);
}

static void *allocate(struct heap *heap, size_t size, size_t align, uint32_t site, bool *zero)
{
    struct large_live *live = heap_large_live(heap);
    void *block = large_alloc_at(size, align, site, live, zero);
    if (block == NULL && relief_for(heap, size))
        block = large_alloc_at(size, align, site, live, zero);
    if (heap != NULL && block != NULL) {
        door_charge(heap, size - budget_put_off_beat(heap, size, large_freed_ms(block)));
        tally(heap, COUNT_LARGE);
        owner_add(&heap->counts->large[size_bin(size)], 1u);
        relief_note(heap);
    }
    return block;
}

/* Is it to be found out which site a request is of? If the program has named it; else of some requests, or, where a site's blocks
 * are kept in a way of their own, of all. */
ALWAYS_INLINE bool asks_site(const struct heap *heap, uintptr_t word, size_t size)
{
    if (heap == NULL)
        return false;
    if (UNLIKELY(word != 0 || load_relaxed(&large_sites_special) != 0))
        return true;
    return UNLIKELY(load_relaxed(&policy.learn) != LEARN_OFF) && site_is_turn(heap->counts->of[COUNT_LARGE], size);
}

static COLD uint32_t ask_site(const struct heap *heap, uintptr_t word, size_t size, const struct os_frame *from,
                              uintptr_t caller)
{
    struct site_request request = {word, size, site_is_turn(heap->counts->of[COUNT_LARGE], size), caller, from};
    return heap_events.site != NULL ? heap_events.site(&request) : SITE_NONE;
}

ENTRANCE NOINLINE void *door_large(size_t size, size_t align, bool *zero, uintptr_t word, uintptr_t caller)
{
    const struct keeper *keeper = keeper_now();
    if (UNLIKELY(keeper != NULL)) {
        *zero = false;
        return door_malloc_kept(size, align, FAMILY_MALLOC);
    }
    void *block = NULL;
    struct heap *heap = door_enter();
    if (size <= PTRDIFF_MAX && align <= PTRDIFF_MAX / 2)
        if (heap != NULL || (load_acquire(&arena.base) != NULL && !fork_holds_any_lock())) {
            uint32_t site = SITE_NONE;
            if (UNLIKELY(asks_site(heap, word, size))) {
                struct os_frame here = os_frame_linked();
                site = ask_site(heap, word, size, &here, caller);
            }
            block = allocate(heap, size, align, site, zero);
        }
    if (heap != NULL) {
        if (may_be_sample(heap) && block != NULL) {
            struct os_frame here = os_frame_linked();
            sample(heap, block, size, &here);
        }
        door_tell(heap, "malloc", block, size);
        door_leave(heap);
    }
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

ENTRANCE void *door_malloc_large(size_t size, size_t align, bool *zero)
{
    return door_large(size, align, zero, 0, DOOR_CALLER);
}

ENTRANCE void *door_malloc_at(size_t size, uintptr_t site)
{
    bool zero;
    return door_large(size, 1, &zero, site, DOOR_CALLER);
}

/* What a block grows by was requested. */
static void *resize(struct heap *heap, struct large *block, size_t size)
{
    const void *before = block->base;
    size_t bytes = block->bytes;
    if (HARDENED && fenced_is_overrun(block))
        report_pointer(FAULT_OVERFLOW, before); /* what was written there would count as content */
    void *p = large_resize(block, size);
    if (p == NULL && relief_for(heap, size - block->bytes))
        p = large_resize(block, size);
    if (heap != NULL) {
        if (p != NULL && block->bytes > bytes)
            door_charge(heap, block->bytes - bytes);
        relief_note(heap);
    }
    if (p != NULL && UNLIKELY(block->sample != NULL))
        block->sample = profiler_now()->resized(block->sample, before, p, size);
    return p;
}

ENTRANCE void *door_resize_large(struct large *block, size_t size)
{
    struct heap *heap = door_enter();
    void *p = heap != NULL || !fork_holds_any_lock() ? resize(heap, block, size) : NULL;
    if (heap != NULL) {
        if (may_be_sample(heap) && p != NULL) {
            struct os_frame here = os_frame_linked();
            sample(heap, p, size, &here);
        }
        door_tell(heap, "realloc", p, size);
        door_leave(heap);
    }
    return p;
}
