#include "heap/fence.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "heap/absent.h"
#include "heap/relief.h"
#include "heap/seal.h"
#include "os/os.h"
#include "span/limit.h"
#include "span/span.h"

enum { FENCES_MOST = 8192 };

static size_t fence_bytes(void)
{
    return units_per_page() << UNIT_SHIFT;
}

static void uncount_fence(void)
{
    sub_relaxed(&absent_fences, fence_bytes());
}

/* False: there are enough. */
static bool count_fence(void)
{
    if (add_relaxed(&absent_fences, fence_bytes()) < FENCES_MOST * fence_bytes())
        return true;
    uncount_fence();
    return false;
}

static void note_units(struct heap *heap, ptrdiff_t units)
{
    store_relaxed(&heap->units, heap->units + (size_t)units);
}

/* What nothing may touch of a slab's units and those behind. */
static char *closed_from(char *base, unsigned class)
{
    return class == ZERO_CLASS ? base : base + size_classes[class].units * UNIT_SIZE;
}

void *fence_take(struct heap *heap, unsigned class, uint32_t *fence, uint32_t *clean)
{
    bool zero;
    unsigned units = size_classes[class].units;
    size_t align = size_class_slab_align(class);
    *fence = count_fence() ? (uint32_t)units_per_page() : 0;
    char *base = span_take(units + *fence, align, &zero);
    if (base == NULL && *fence > 0 && !limit_is_short_of((units + *fence) * UNIT_SIZE)) {
        uncount_fence();
        *fence = 0;
        base = span_take(units, align, &zero); /* between fences that could not be opened there is room for less */
    }
    if (base == NULL) {
        if (*fence > 0)
            uncount_fence();
        return NULL;
    }
    char *end = base + (units + *fence) * UNIT_SIZE;
    char *closed = closed_from(base, class);
    if (!zero)
        memset(base, 0, units * UNIT_SIZE);
    *clean = zero ? mask32(units) : 0;
    if (closed < end)
        (void)os_close(closed, (size_t)(end - closed));
    note_units(heap, (ptrdiff_t)units);
    relief_note(heap);
    return base;
}

void fence_touch(struct slab *slab, const void *block)
{
    size_t page = os_page_size();
    size_t end = (size_t)((const char *)block - slab->base) + slab->stride;
    if (slab->class == ZERO_CLASS)
        return;
    for (; slab->touched * page < end; slab->touched++) {
        uint64_t zero = 0;
        uint64_t *word = (uint64_t *)(void *)(slab->base + slab->touched * page);
        (void)__atomic_compare_exchange_n(word, &zero, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void fence_give(struct heap *heap, char *base, unsigned class, uint32_t fence)
{
    unsigned units = size_classes[class].units;
    char *end = base + (units + fence) * UNIT_SIZE;
    char *closed = closed_from(base, class);
    note_units(heap, -(ptrdiff_t)units);
    if (fence > 0)
        uncount_fence();
    bool opened = closed == end || os_commit(closed, (size_t)(end - closed));
    size_t lost = opened ? 0 : (size_t)(end - closed) / UNIT_SIZE;
    if (lost < units + fence)
        span_give(base, units + fence - lost, true);
    if (lost > 0)
        span_abandon(lost);
}
