#include "learn/epoch.h"

/* Fewer visits to the door than this say little of the program. */
enum { VISITS_LEAST = 32 };

/* Shares that must have moved elsewhere, of 65536. A policy that makes one magazine twice as large moves at most a sixth. */
enum { MOVED_LEAST = 65536 * 2 / 5 };

/* Small sizes by doublings, from up to 32 bytes to more than 2 KiB; large ones by pairs of bins. */
enum { SMALL_SIZES = 8, SMALLEST_SHIFT = 5 };

void epoch_add(struct epoch *to, const struct epoch *more)
{
    to->end_ms = more->end_ms;
    to->ms += more->ms;
    to->work_ns += more->work_ns;
    to->requested += more->requested;
    to->purged += more->purged;
    to->kept_most = max_size(to->kept_most, more->kept_most);
    for (unsigned i = 0; i < COST_PARTS; i++) {
        to->ns[i] += more->ns[i];
        to->held_ms[i] += more->held_ms[i];
    }
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        to->refills[i] += more->refills[i];
    for (unsigned i = 0; i < SIZE_BINS; i++)
        to->large[i] += more->large[i];
    to->heaps = more->heaps;
}

void epoch_fade(struct epoch *epoch)
{
    epoch->ms /= 2;
    epoch->work_ns /= 2;
    epoch->requested /= 2;
    epoch->purged /= 2;
    epoch->kept_most = 0; /* what is added next has its own */
    for (unsigned i = 0; i < COST_PARTS; i++) {
        epoch->ns[i] /= 2;
        epoch->held_ms[i] /= 2;
    }
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        epoch->refills[i] /= 2;
    for (unsigned i = 0; i < SIZE_BINS; i++)
        epoch->large[i] /= 2;
}

uint64_t epoch_ns(const struct epoch *epoch)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < COST_PARTS; i++)
        ns += epoch->ns[i];
    return ns;
}

struct epoch epoch_as_worked(const struct epoch *epoch)
{
    struct epoch worked = *epoch;
    uint64_t ns = epoch_ns(epoch);
    if (epoch->work_ns == 0 || ns <= epoch->work_ns)
        return worked;
    double part = (double)epoch->work_ns / (double)ns;
    for (unsigned i = 0; i < COST_PARTS; i++) {
        worked.ns[i] = (uint64_t)((double)epoch->ns[i] * part);
        worked.held_ms[i] = (uint64_t)((double)epoch->held_ms[i] * part);
    }
    return worked;
}

static double for_each_mib(const struct epoch *epoch, uint64_t ns)
{
    return epoch->requested == 0 ? 0 : (double)ns * (double)MIB / (double)epoch->requested;
}

double epoch_cost(const struct epoch *epoch)
{
    return for_each_mib(epoch, epoch_ns(epoch));
}

uint64_t epoch_compared_ns(const struct epoch *epoch)
{
    return epoch_ns(epoch) + (uint64_t)((double)epoch->work_ns * COST_LEAST_PART);
}

double epoch_compared_cost(const struct epoch *epoch)
{
    return for_each_mib(epoch, epoch_compared_ns(epoch));
}

uint64_t epoch_held(const struct epoch *epoch, enum cost_part part)
{
    return epoch->ms == 0 ? 0 : epoch->held_ms[part] / epoch->ms;
}

static unsigned size_group(size_t size)
{
    unsigned log = size <= (1 << SMALLEST_SHIFT) ? 0 : log2_floor(size - 1) + 1 - SMALLEST_SHIFT;
    return log < SMALL_SIZES ? log : SMALL_SIZES - 1;
}

struct mix mix_of(const uint32_t refills[SIZE_CLASSES], const uint32_t large[SIZE_BINS])
{
    uint64_t counts[MIX_SIZES] = {0};
    uint64_t all = 0;
    struct mix mix = {.visits = 0};
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        counts[size_group(size_classes[i].size)] += refills[i];
    for (unsigned i = 0; i < SIZE_BINS; i++)
        counts[SMALL_SIZES + i / 2] += large[i];
    for (unsigned i = 0; i < MIX_SIZES; i++)
        all += counts[i];
    for (unsigned i = 0; i < MIX_SIZES && all > 0; i++)
        mix.share[i] = (uint32_t)(counts[i] * 65536 / all);
    mix.visits = (uint32_t)min_size(all, UINT32_MAX);
    return mix;
}

bool mix_differs(const struct mix *a, const struct mix *b)
{
    uint32_t moved = 0;
    if (a->visits < VISITS_LEAST || b->visits < VISITS_LEAST)
        return false;
    for (unsigned i = 0; i < MIX_SIZES; i++)
        moved += a->share[i] > b->share[i] ? a->share[i] - b->share[i] : 0;
    return moved >= MOVED_LEAST;
}
