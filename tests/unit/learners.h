/* A learner, and programs that it learns of. */
#ifndef HAK_TEST_LEARNERS_H
#define HAK_TEST_LEARNERS_H

#include "base/bits.h"
#include "check.h"
#include "config/policy.h"
#include "learn/decisions.h"
#include "learn/learner.h"

enum { CLASS = 30, EPOCH_MS = 20, LIMIT = 5000 };

/* A program: what an epoch costs with the mode's values, for each doubling of the magazines of CLASS, and for any other
 * change. */
struct costs {
    uint64_t mode;
    double doubling;
    double other;
    bool is_large; /* it asks for large blocks, and for no small ones */
};

static const struct costs usual = {.mode = 1000000, .doubling = 0.8, .other = 1.1};

static struct learner learner;
static uint64_t now_ms;

static inline double cost_of(const struct costs *costs, const struct arm *arm)
{
    double cost = (double)costs->mode;
    for (uint32_t i = 0; i < arm->count; i++) {
        const struct change *change = &arm->changes[i];
        bool is_wider = change->knob == KNOB_MAGAZINE_BYTES && change->index == CLASS;
        uint64_t steps = is_wider ? log2_floor(change->value / knob_of_mode(KNOB_MAGAZINE_BYTES, CLASS)) : 1;
        for (uint64_t step = 0; step < steps; step++)
            cost *= is_wider ? costs->doubling : costs->other;
    }
    return cost;
}

static inline struct epoch epoch_of(const struct costs *costs)
{
    struct epoch epoch = {.requested = MIB, .ms = EPOCH_MS, .work_ns = (uint64_t)EPOCH_MS * 1000000};
    epoch.ns[COST_REFILLS] = (uint64_t)cost_of(costs, learner_arm(&learner));
    epoch.refills[CLASS] = costs->is_large ? 0 : 1000;
    epoch.large[4] = costs->is_large ? 1000 : 0;
    return epoch;
}

static inline void step_with(struct epoch epoch)
{
    now_ms += EPOCH_MS;
    epoch.end_ms = now_ms;
    learner_step(&learner, &epoch);
}

static inline void step(const struct costs *costs)
{
    step_with(epoch_of(costs));
}

/* Until the state is reached; so many epochs it took. */
static inline int until(const struct costs *costs, enum learner_state state)
{
    int epochs = 0;
    for (; learner.state != state && epochs < LIMIT; epochs++)
        step(costs);
    CHECK(learner.state == state);
    return epochs;
}

static inline void begin(bool observes, unsigned parts)
{
    size_class_init();
    now_ms = 0;
    learner_begin(&learner, observes, parts, 5);
}

static inline const struct arm *champion(void)
{
    return &learner.arms[learner.champion];
}

static inline uint64_t width(void)
{
    return arm_value(champion(), KNOB_MAGAZINE_BYTES, CLASS);
}

static inline size_t decided(enum decision_kind kind, uint32_t what)
{
    static struct decision decisions[DECISIONS_KEPT];
    size_t count = decisions_copy(decisions, DECISIONS_KEPT);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += decisions[i].kind == kind && decisions[i].what == what ? 1 : 0;
    return found;
}

#endif
