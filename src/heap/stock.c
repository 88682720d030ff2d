#include "heap/stock.h"

#include "base/bits.h"
#include "span/span.h"

enum { GROUP_UNITS = 8 };

#define GROUP_SIZE (GROUP_UNITS * UNIT_SIZE)
#define WHOLE_GROUP mask32(GROUP_UNITS)

static void *take_from(struct unit_group *group, unsigned units)
{
    uint32_t mask = mask32(units);
    for (unsigned first = 0; first + units <= GROUP_UNITS; first++) {
        if ((group->free >> first & mask) == mask) {
            group->free &= ~(mask << first);
            return group->base + first * UNIT_SIZE;
        }
    }
    return NULL;
}

static struct unit_group *new_group(struct heap *heap)
{
    bool zero;
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        if (group->free != 0)
            continue;
        group->base = span_take(GROUP_UNITS, GROUP_UNITS, &zero);
        group->free = group->base != NULL ? WHOLE_GROUP : 0;
        return group->base != NULL ? group : NULL;
    }
    return NULL;
}

void *stock_take(struct heap *heap, unsigned units)
{
    if (units < GROUP_UNITS) {
        for (int i = 0; i < STOCK_GROUPS; i++) {
            void *at = take_from(&heap->stock[i], units);
            if (at != NULL)
                return at;
        }
        struct unit_group *group = new_group(heap);
        if (group != NULL)
            return take_from(group, units);
    }
    bool zero;
    return span_take(units, 1, &zero);
}

void stock_give(struct heap *heap, void *at, unsigned units)
{
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        size_t offset = (uintptr_t)at - (uintptr_t)group->base;
        if (offset >= GROUP_SIZE || offset + units * UNIT_SIZE > GROUP_SIZE)
            continue; /* below (the distance wraps), above, or across the end: not of this group */
        group->free |= mask32(units) << (offset >> UNIT_SHIFT);
        if (group->free == WHOLE_GROUP) {
            span_give(group->base, GROUP_UNITS, true);
            *group = (struct unit_group){0};
        }
        return;
    }
    span_give(at, units, true);
}

void stock_trim(struct heap *heap)
{
    for (int i = 0; i < STOCK_GROUPS; i++) {
        struct unit_group *group = &heap->stock[i];
        for (unsigned unit = 0; unit < GROUP_UNITS; unit++)
            if ((group->free >> unit & 1) != 0)
                span_give(group->base + unit * UNIT_SIZE, 1, true);
        *group = (struct unit_group){0};
    }
}
