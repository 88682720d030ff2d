#include "heap/stock.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "config/policy.h"
#include "heap/relief.h"
#include "large/large.h"
#include "span/huge.h"
#include "span/span.h"

enum {
    GROUP_UNITS_MOST = 16,
    SHARE = 256, /* a group is at most this part of what the heap holds */
};

/* Large heaps take large groups: what lies in them unused is small beside what they hold. */
static unsigned group_units(const struct heap *heap)
{
    size_t share = heap->units / SHARE;
    return share < 2 ? 1 : (unsigned)min_size((size_t)1 << log2_floor(share), GROUP_UNITS_MOST);
}

static void put_in(struct heap *heap, struct unit_group *group, uint32_t units, uint32_t clean)
{
    group->free |= units;
    group->clean |= clean;
    store_relaxed(&heap->stock_units, heap->stock_units + count_ones64(units));
    if (clean != 0)
        store_relaxed(&heap->stock_clean, heap->stock_clean + count_ones64(clean));
}

static void take_out(struct heap *heap, struct unit_group *group, uint32_t units)
{
    store_relaxed(&heap->stock_units, heap->stock_units - count_ones64(units));
    if ((units & group->clean) != 0)
        store_relaxed(&heap->stock_clean, heap->stock_clean - count_ones64(units & group->clean));
    group->free &= ~units;
    group->clean &= ~units;
}

/* If the superslab has become a huge page since, what was clean has pages, and is like all others. */
static void know_clean(struct heap *heap, struct unit_group *group)
{
    uint8_t collapses = huge_collapses_at(group->base);
    if (group->collapses == collapses)
        return;
    uint32_t units = count_ones64(group->clean);
    group->collapses = collapses;
    group->clean = 0;
    store_relaxed(&heap->stock_clean, heap->stock_clean - units);
    huge_counts_again(group->base, (size_t)units << UNIT_SHIFT);
}

static void *take_from(struct heap *heap, struct unit_group *group, struct span_run wanted, uint32_t *clean)
{
    uint32_t places = (uint32_t)(run_starts128(group->free, wanted.units) & multiples128(wanted.align));
    if (places == 0)
        return NULL;
    unsigned first = lowest_one128(places);
    uint32_t mask = mask32(wanted.units);
    know_clean(heap, group);
    *clean = group->clean >> first & mask;
    take_out(heap, group, mask << first);
    return group->base + first * UNIT_SIZE;
}

/* Of a run that span_take has given. With huge pages everywhere the first touch of a neighbour has brought them in, perhaps. */
static uint32_t clean_units(unsigned units, bool zero)
{
    return zero && policy.huge != HUGE_ON ? mask32(units) : 0;
}

static void *take_span(struct span_run wanted, uint32_t *clean)
{
    bool zero;
    void *at = span_take(wanted.units, wanted.align, &zero);
    *clean = clean_units(wanted.units, zero);
    return at;
}

static struct unit_group *empty_group(struct heap *heap)
{
    for (int i = 0; i < STOCK_GROUPS; i++)
        if (heap->stock[i].free == 0)
            return &heap->stock[i];
    return NULL;
}

/* From a new group of `size` units, if there is one to be had. */
static NOINLINE void *take_anew(struct heap *heap, unsigned size, struct span_run wanted, uint32_t *clean)
{
    struct unit_group *group = empty_group(heap);
    struct span_run run = {size, size};
    bool zero;
    char *base = group != NULL ? span_take_group(&run, wanted, &zero) : NULL;
    if (base == NULL)
        return take_span(wanted, clean);
    *clean = clean_units(run.units, zero);
    if (run.units == wanted.units)
        return base;
    *group = (struct unit_group){.base = base, .units = size, .collapses = huge_collapses_at(base)};
    put_in(heap, group, mask32(size), *clean);
    return take_from(heap, group, wanted, clean);
}

static void *take(struct heap *heap, struct span_run wanted, uint32_t *clean)
{
    unsigned size = group_units(heap);
    if (wanted.units >= size)
        return take_span(wanted, clean);
    for (int i = 0; i < STOCK_GROUPS; i++) {
        void *at = take_from(heap, &heap->stock[i], wanted, clean);
        if (at == NULL)
            continue;
        tally(heap, COUNT_FROM_STOCK);
        return at;
    }
    return take_anew(heap, size, wanted, clean);
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

/* What there is of a group. */
static NOINLINE void give_group(struct heap *heap, struct unit_group *group)
{
    know_clean(heap, group);
    uint32_t clean = group->clean;
    uint32_t left = group->free;
    take_out(heap, group, left);
    while (left != 0) {
        unsigned first;
        unsigned units = lowest_run128(left, &first);
        give(group->base + first * UNIT_SIZE, units, clean >> first);
        left &= ~(mask32(units) << first);
    }
    *group = (struct unit_group){0};
}

void *stock_take(struct heap *heap, unsigned units, unsigned align, uint32_t *clean)
{
    void *at = take(heap, (struct span_run){units, align}, clean);
    if (at == NULL)
        return NULL;
    store_relaxed(&heap->units, heap->units + units);
    large_offset_growth(units << UNIT_SHIFT);
    relief_note(heap);
    return at;
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
        know_clean(heap, group);
        put_in(heap, group, mask32(units) << (offset >> UNIT_SHIFT), clean << (offset >> UNIT_SHIFT));
        if (group->free == mask32(group->units))
            give_group(heap, group);
        return;
    }
    give(at, units, clean);
}

void stock_trim(struct heap *heap)
{
    for (int i = 0; i < STOCK_GROUPS; i++)
        if (heap->stock[i].units != 0)
            give_group(heap, &heap->stock[i]);
}
