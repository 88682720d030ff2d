#include "learn/arms.h"

#include <stddef.h>

static const struct change *find(const struct arm *arm, enum knob knob, unsigned index)
{
    for (uint32_t i = 0; i < arm->count; i++)
        if (arm->changes[i].knob == knob && arm->changes[i].index == index)
            return &arm->changes[i];
    return NULL;
}

uint64_t arm_value(const struct arm *arm, enum knob knob, unsigned index)
{
    const struct change *change = find(arm, knob, index);
    return change != NULL ? change->value : knob_of_mode(knob, index);
}

static void drop(struct arm *arm, enum knob knob, unsigned index)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < arm->count; i++)
        if (arm->changes[i].knob != knob || arm->changes[i].index != index)
            arm->changes[kept++] = arm->changes[i];
    arm->count = kept;
}

void arm_set(struct arm *arm, enum knob knob, unsigned index, uint64_t value)
{
    drop(arm, knob, index);
    if (value != knob_of_mode(knob, index))
        arm->changes[arm->count++] = (struct change){value, knob, index};
}

bool arm_says_the_same(const struct arm *a, const struct arm *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && same; i++) {
        const struct change *other = find(b, a->changes[i].knob, a->changes[i].index);
        same = other != NULL && other->value == a->changes[i].value;
    }
    return same;
}

void arm_of_knobs(struct arm *arm)
{
    arm->count = 0;
    for (enum knob knob = 0; knob < KNOBS; knob++)
        for (unsigned i = 0; i < knob_info[knob].count && !knob_is_pinned(knob); i++)
            arm_set(arm, knob, i, knob_get(knob, i));
}

void arm_switch(const struct arm *from, const struct arm *to)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct change *old = &from->changes[i];
        if (find(to, old->knob, old->index) == NULL)
            knob_set(old->knob, old->index, knob_of_mode(old->knob, old->index));
    }
    for (uint32_t i = 0; i < to->count; i++)
        knob_set(to->changes[i].knob, to->changes[i].index, to->changes[i].value);
}

void arm_each_difference(const struct arm *a, const struct arm *b,
                         void (*visit)(enum knob knob, unsigned index, uint64_t in_a, uint64_t in_b, void *data), void *data)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct change *change = &a->changes[i];
        uint64_t in_b = arm_value(b, change->knob, change->index);
        if (change->value != in_b)
            visit(change->knob, change->index, change->value, in_b, data);
    }
    for (uint32_t i = 0; i < b->count; i++) {
        const struct change *change = &b->changes[i];
        if (find(a, change->knob, change->index) == NULL)
            visit(change->knob, change->index, knob_of_mode(change->knob, change->index), change->value, data);
    }
}

static void note_time(enum knob knob, unsigned index, uint64_t in_a, uint64_t in_b, void *data)
{
    uint64_t *longest = data;
    uint64_t longer = in_a > in_b ? in_a : in_b;
    (void)index;
    if ((knob == KNOB_PURGE_MS || knob == KNOB_BIGCACHE_MS) && longer > *longest)
        *longest = longer;
}

uint64_t arm_delay_ms(const struct arm *a, const struct arm *b)
{
    uint64_t longest = 0;
    arm_each_difference(a, b, note_time, &longest);
    return longest;
}
