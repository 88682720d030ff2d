#include "program.h"

#include "base/bits.h"
#include "config/policy.h"
#include "heap/magazine.h"
#include "learn/evolution.h"
#include "learn/prices.h"

enum { CLASSES = 2, LARGE_BIN = 4, MEBIBYTES_PER_MS = 2, EPOCH_MS = 20 };

static const unsigned class_of[CLASSES] = {24, 30};

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Without noise. */
static struct epoch exact_epoch(const struct phase *phase, const struct arm *arm, double ms)
{
    struct epoch epoch = {.requested = (uint64_t)(ms * MEBIBYTES_PER_MS) * MIB, .ms = (uint64_t)ms,
                          .work_ns = (uint64_t)(ms * 1e6)};
    double mebibytes = ms * MEBIBYTES_PER_MS;
    double ns[COST_PARTS] = {0};
    double held[COST_PARTS] = {0}; /* MiB */
    for (int i = 0; i < CLASSES; i++) {
        double size = size_classes[class_of[i]].size;
        double bytes = least((double)arm_value(arm, KNOB_MAGAZINE_BYTES, class_of[i]), size * MAGAZINE_SLOTS_MOST);
        double refills = mebibytes * phase->refills[i] * 65536 / bytes;
        epoch.refills[class_of[i]] = (uint32_t)refills;
        ns[COST_REFILLS] += refills * PRICE_REFILL / 2;
        held[COST_CACHED] += phase->refills[i] > 0 ? phase->threads * bytes / (double)MIB : 0;
    }
    if (phase->large > 0) {
        double requests = mebibytes * phase->large;
        double budget = (double)arm_value(arm, KNOB_BIGCACHE_BYTES, 0) / (double)MIB;
        double kept_ms = (double)arm_value(arm, KNOB_BIGCACHE_MS, LARGE_BIN);
        double in_time = least(kept_ms / phase->interval_ms, 1);
        double hits = in_time < 1 ? 0 : least(budget / phase->working_set, 1);
        epoch.large[LARGE_BIN] = (uint32_t)requests;
        ns[COST_LARGE] += requests * PRICE_LARGE;
        ns[COST_FAULTS] += requests * (1 - hits) * 256 * PRICE_FAULT;
        ns[COST_CALLS] += requests * (1 - hits) * PRICE_CALL;
        held[COST_KEPT] += least(budget, phase->working_set) * in_time;
        epoch.kept_most = (uint64_t)(held[COST_KEPT] * (double)MIB);
    }
    if (phase->valley > 0) {
        double delay = (double)arm_value(arm, KNOB_PURGE_MS, 0);
        double pages = ms / (2 * phase->valley_ms) * phase->valley * 256;
        bool is_early = delay < phase->valley_ms;
        epoch.purged = is_early ? (uint64_t)(pages * PRICED_PAGE_BYTES) : 0;
        ns[COST_FAULTS] += is_early ? pages * PRICE_FAULT : 0;
        ns[COST_CALLS] += is_early ? pages * PRICE_PURGED_PAGE : 0;
        held[COST_DIRTY] += phase->valley * least(delay, phase->valley_ms) / (2 * phase->valley_ms);
    }
    ns[COST_REMOTE] += phase->base * mebibytes;
    for (int i = 0; i < COST_PARTS; i++) {
        epoch.ns[i] = (uint64_t)(ns[i] + held[i] * ms * policy.memory_price / 1000);
        epoch.held_ms[i] = (uint64_t)(held[i] * (double)MIB * ms);
    }
    return epoch;
}

double program_cost(const struct phase *phase, const struct arm *arm)
{
    struct epoch epoch = exact_epoch(phase, arm, 1000);
    return epoch_cost(&epoch);
}

/* One value, over all its steps. True: the arm has become better. */
static bool improve(const struct phase *phase, struct arm *best, enum knob knob, unsigned index)
{
    bool improved = false;
    for (int up = 0; up < 2; up++) {
        struct arm next = *best;
        for (int steps = 0; steps < 24; steps++) {
            uint64_t value = arm_value(&next, knob, index);
            arm_set(&next, knob, index, evolution_step(knob, value, up != 0));
            if (program_cost(phase, &next) < program_cost(phase, best) * 0.9999) {
                *best = next;
                improved = true;
            }
        }
    }
    return improved;
}

void program_best(const struct phase *phase, struct arm *best)
{
    *best = (struct arm){.count = 0};
    for (bool improved = true; improved;) {
        improved = improve(phase, best, KNOB_BIGCACHE_BYTES, 0);
        improved |= improve(phase, best, KNOB_BIGCACHE_MS, LARGE_BIN);
        improved |= improve(phase, best, KNOB_PURGE_MS, 0);
        for (int i = 0; i < CLASSES; i++)
            improved |= improve(phase, best, KNOB_MAGAZINE_BYTES, class_of[i]);
    }
}

static double uniform(uint64_t *random)
{
    *random = next_xorshift(*random);
    return (double)(*random >> 11) / (double)((uint64_t)1 << 53);
}

/* Roughly normal, and one epoch in a hundred costs half as much again. */
static double noise_factor(double noise, uint64_t *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(random);
    double factor = 1 + noise * sum + (noise > 0 && uniform(random) < 0.01 ? 0.5 : 0);
    return factor > 0.1 ? factor : 0.1;
}

struct epoch program_epoch(const struct phase *phase, const struct arm *arm, uint64_t ms, double noise, uint64_t *random)
{
    struct epoch epoch = exact_epoch(phase, arm, (double)ms);
    double factor = noise_factor(noise, random);
    for (int i = 0; i < COST_PARTS; i++)
        epoch.ns[i] = (uint64_t)((double)epoch.ns[i] * factor);
    return epoch;
}

void run_begin(struct run *run, uint64_t seed, double noise)
{
    size_class_init();
    *run = (struct run){.random = seed * 2 + 1, .noise = noise};
    learner_begin(&run->learner, false, LEARN_ALL, seed);
}

void run_epoch(struct run *run, const struct phase *phase, const struct arm *best)
{
    static const struct arm mode;
    const struct arm *arm = learner_arm(&run->learner);
    uint64_t delay = 2 * learner_delay_ms(&run->learner);
    uint64_t usual = (uint64_t)EPOCH_MS << run->learner.stretch;
    struct epoch epoch = program_epoch(phase, arm, delay > usual ? delay : usual, run->noise, &run->random);
    double mebibytes = (double)epoch.requested / (double)MIB;
    run->now_ms += epoch.ms;
    epoch.end_ms = run->now_ms;
    run->cost += program_cost(phase, arm) * mebibytes;
    run->mode_cost += program_cost(phase, &mode) * mebibytes;
    run->best_cost += program_cost(phase, best) * mebibytes;
    run->worked_ns += (double)epoch.work_ns;
    learner_step(&run->learner, &epoch);
}

void run_for(struct run *run, const struct phase *phase, uint64_t ms)
{
    struct arm best;
    uint64_t end = run->now_ms + ms;
    program_best(phase, &best);
    run->cost = run->mode_cost = run->best_cost = 0;
    while (run->now_ms < end)
        run_epoch(run, phase, &best);
}
