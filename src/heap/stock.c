#include "heap/stock.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "heap/relief.h"
#include "span/span.h"

enum {
    GROUP_UNITS_MOST = 8,
    SHARE = 256, /* a group is at most this part of what the heap holds */
};

/* Large heaps take large groups: what lies in them unused is small beside what they hold. */
static unsigned group_units(const struct heap *heap)
{
    size_t share = heap->units / SHARE;
    return share < 2 ? 1 : (unsigned)min_size((size_t)1 << log2_floor(share), GROUP_UNITS_MOST);
}

static void count_stock(struct heap *heap, int units)
{
    store_relaxed(&heap->stock_units, heap->stock_units + (uint32_t)units);
}

static void *take_from(struct heap *heap, struct unit_group *group, unsigned units)
{
    uint32_t mask = mask32(units);
    for (unsigned first = 0; first + units <= GROUP_UNITS_MOST; first++) {
        if ((group->free >> first & mask) == mask) {
            group->free &= ~(mask << first);
            count_stock(heap, -(int)units);
            return group->base + first * UNIT_SIZE;
        }
    }
    return NULL;
}

static struct unit_group *new_group(struct heap *heap, unsigned size)
{
    bool zero;
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        if (group->free != 0)
            continue;
        char *base = span_take(size, size, &zero);
        if (base == NULL)
            return NULL;
        *group = (struct unit_group){.base = base, .units = size, .free = mask32(size)};
        count_stock(heap, (int)size);
        return group;
    }
    return NULL;
}

static void *take(struct heap *heap, unsigned units)
{
    unsigned size = group_units(heap);
    bool zero;
    if (units >= size)
        return span_take(units, 1, &zero);
    for (int i = 0; i < STOCK_GROUPS; i++) {
        void *at = take_from(heap, &heap->stock[i], units);
        if (at == NULL)
            continue;
        tally(heap, COUNT_FROM_STOCK);
        return at;
    }
    struct unit_group *group = new_group(heap, size);
    return group != NULL ? take_from(heap, group, units) : span_take(units, 1, &zero);
}

void *stock_take(struct heap *heap, unsigned units)
{
    void *at = take(heap, units);
    if (at == NULL)
        return NULL;
    store_relaxed(&heap->units, heap->units + units);
    relief_note(heap);
    return at;
}

/* Those that are alike together. */
static void give(char *at, unsigned units, uint32_t clean)
{
    for (unsigned first = 0, end; first < units; first = end) {
        uint32_t is_clean = clean >> first & 1;
        for (end = first + 1; end < units && (clean >> end & 1) == is_clean; end++) {}
        span_give(at + first * UNIT_SIZE, end - first, is_clean == 0);
    }
}

void stock_give(struct heap *heap, void *at, unsigned units, uint32_t clean)
{
    store_relaxed(&heap->units, heap->units - units);
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        size_t offset = (uintptr_t)at - (uintptr_t)group->base;
        size_t size = group->units * UNIT_SIZE;
        if (offset >= size || offset + units * UNIT_SIZE > size)
            continue; /* below (the distance wraps), above, or across the end: not of this group */
        group->free |= mask32(units) << (offset >> UNIT_SHIFT);
        count_stock(heap, (int)units);
        if (group->free == mask32(group->units)) {
            count_stock(heap, -(int)group->units);
            span_give(group->base, group->units, true);
            *group = (struct unit_group){0};
        }
        return;
    }
    give(at, units, clean);
}

void stock_trim(struct heap *heap)
{
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        for (uint32_t left = group->free; left != 0;) {
            unsigned first;
            unsigned units = lowest_run128(left, &first);
            span_give(group->base + first * UNIT_SIZE, units, true);
            left &= ~(mask32(units) << first);
        }
        *group = (struct unit_group){0};
    }
    store_relaxed(&heap->stock_units, 0u);
}
