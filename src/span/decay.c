#include "span/decay.h"

#include "base/clock.h"

/* A regret: taken again within so many delays. So much of what was given back lately must be regretted. */
enum { SOON = 8, REGRETTED_PART = 4 };

enum { CALM_STEPS = 16 };

bool decay_is_regret(uint64_t now_ms, uint64_t given_back_ms, uint64_t delay_ms)
{
    return given_back_ms != 0 && now_ms - given_back_ms <= delay_ms * SOON;
}

void decay_learn(struct decay *decay, uint64_t now_ms, uint64_t delay_ms, uint32_t doubled_most)
{
    if (!clock_has_passed(now_ms, decay->step_ms, delay_ms))
        return;
    if (decay->regretted > decay->given_back / REGRETTED_PART) {
        decay->calm = 0;
        decay->doubled++;
    } else if (++decay->calm >= CALM_STEPS) {
        decay->calm = 0;
        if (decay->doubled > 0)
            decay->doubled--;
    }
    if (decay->doubled > doubled_most)
        decay->doubled = doubled_most;
    decay->step_ms = now_ms;
    decay->given_back /= 2;
    decay->regretted = 0;
}

uint64_t decay_horizon(const struct decay *decay, uint64_t now_ms, uint64_t delay_ms)
{
    uint64_t kept_ms = delay_ms << decay->doubled;
    return now_ms > kept_ms ? now_ms - kept_ms : 0;
}
