#include "learn/fit_choice.h"

#include "base/bits.h"
#include "config/size_class.h"

enum {
    REFILLS_LEAST = 16,
    HELD_SHARE = 512,   /* so much of what is held has to be saved */
    OPEN_TIMES = 2,     /* so many times what it costs has a class to save that is opened, */
    OPEN_TIMES_FEW = 8, /* if its slabs have few blocks: then more of them are partly free; */
    FEW_ABOVE = 4096,
    VAIN_DIVISOR = 2,   /* and this part of it that remains open */
    FAILURES_MOST = 16,
};

static uint64_t slab_bytes(const struct size_class *class)
{
    return class->units * UNIT_SIZE;
}

/* Bytes of slabs that a block takes. */
static uint64_t block_bytes(const struct size_class *class)
{
    return slab_bytes(class) / class->blocks;
}

/* Of the range's blocks, those that are `part` of `sum`. */
static uint64_t share_of(const struct fit_range *range, uint64_t part, uint64_t sum)
{
    return (uint64_t)((double)range->out * (double)part / (double)sum);
}

static size_t first_step(const struct fit_range *range)
{
    return range->above / SIZE_CLASS_STEP + 1;
}

static size_t last_step(const struct fit_range *range)
{
    return range->size / SIZE_CLASS_STEP;
}

static uint64_t sum_of(const struct fit_range *range)
{
    uint64_t sum = 0;
    for (size_t step = first_step(range); step <= last_step(range); step++)
        sum += range->seen[step];
    return sum;
}

struct fit_range fit_cut(struct fit_range *range, size_t size)
{
    struct fit_range lower = *range;
    uint64_t sum = sum_of(range);
    lower.size = size;
    if (size == range->size)
        return lower;
    lower.out = sum == 0 ? 0 : share_of(range, sum_of(&lower), sum);
    range->above = size;
    range->out -= lower.out;
    return lower;
}

uint64_t fit_waste(const struct fit_range *range, uint64_t held)
{
    uint64_t sum = 0;
    uint64_t steps_lost = 0;
    if (range->refills < REFILLS_LEAST)
        return 0;
    for (size_t step = first_step(range); step <= last_step(range); step++) {
        sum += range->seen[step];
        steps_lost += range->seen[step] * (uint64_t)(last_step(range) - step);
    }
    uint64_t waste = sum == 0 ? 0 : share_of(range, steps_lost, sum) * SIZE_CLASS_STEP;
    return waste > held / HELD_SHARE ? waste : 0;
}

void fit_rank(struct fit_worst *worst, const struct fit_range *range, uint64_t held)
{
    uint64_t waste = fit_waste(range, held);
    size_t at = FIT_WORST;
    for (; at > 0 && worst->waste[at - 1] < waste; at--) {
        if (at == FIT_WORST)
            continue;
        worst->range[at] = worst->range[at - 1];
        worst->waste[at] = worst->waste[at - 1];
    }
    if (at == FIT_WORST)
        return;
    worst->range[at] = *range;
    worst->waste[at] = waste;
}

/* A class for `blocks` that are of the class `wide` else. */
static struct fit_offer offer_of(size_t size, const struct size_class *wide, uint64_t blocks, uint32_t heaps)
{
    struct size_class fitting = size_class_geometry(size);
    uint64_t less = block_bytes(wide) > block_bytes(&fitting) ? block_bytes(wide) - block_bytes(&fitting) : 0;
    return (struct fit_offer){.size = size, .saves = blocks * less, .costs = heaps * slab_bytes(&fitting)};
}

struct fit_offer fit_best(const struct fit_range *range)
{
    struct fit_offer best = {0};
    struct size_class wide = size_class_geometry(range->size);
    uint64_t sum = sum_of(range);
    uint64_t below = 0;
    for (size_t step = first_step(range); step < last_step(range); step++) {
        if (range->seen[step] == 0)
            continue; /* a smaller one serves the same */
        below += range->seen[step];
        struct fit_offer offer = offer_of(step * SIZE_CLASS_STEP, &wide, share_of(range, below, sum), range->heaps);
        if (offer.saves > offer.costs && offer.saves - offer.costs > best.saves - best.costs)
            best = offer;
    }
    return best;
}

bool fit_is_worth(const struct fit_offer *offer, uint64_t held, unsigned failures)
{
    uint64_t usual = offer->size > FEW_ABOVE ? OPEN_TIMES_FEW : OPEN_TIMES;
    uint64_t times = usual << min_size(failures, FAILURES_MOST);
    return offer->size != 0 && offer->saves > offer->costs * times && offer->saves > held / HELD_SHARE;
}

struct fit_offer fit_of_class(const struct fit_range *range, size_t next)
{
    struct size_class wide = size_class_geometry(next);
    return offer_of(range->size, &wide, range->out, range->heaps);
}

bool fit_is_vain(const struct fit_offer *offer)
{
    return offer->saves < offer->costs / VAIN_DIVISOR;
}
