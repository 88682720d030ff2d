#include "learn/patience.h"

enum { TRIALS_LEAST = 8 };

/* Another is clearly better if it saves so much of the faults more. */
enum { CLEARLY_PART = 16 };

uint32_t trials_count(const struct trials *trials)
{
    uint32_t count = trials->unwanted;
    for (unsigned time = 0; time < SITE_TIMES; time++)
        count += trials->waits[time];
    return count;
}

static int64_t holding_ns(uint64_t ms, uint32_t price_ns)
{
    return (int64_t)(ms * price_ns / 1000);
}

/* In the middle of its time, on average. */
static uint64_t mean_ms(unsigned time)
{
    return site_time_least(time) + site_time_least(time) / 2;
}

int64_t patience_saves(const struct trials *trials, unsigned patience, uint64_t age_ms, uint32_t price_ns)
{
    if (patience == PATIENCE_NONE)
        return 0;
    uint64_t kept_ms = age_ms << patience;
    int64_t saved = -(int64_t)trials->unwanted * holding_ns(kept_ms, price_ns);
    for (unsigned time = 0; time < SITE_TIMES; time++) {
        bool in_time = mean_ms(time) <= kept_ms;
        int64_t each = in_time ? TRIAL_FAULTS_NS - holding_ns(mean_ms(time), price_ns) : -holding_ns(kept_ms, price_ns);
        saved += (int64_t)trials->waits[time] * each;
    }
    return saved;
}

unsigned patience_choose(const struct trials *trials, unsigned now, uint64_t age_ms, uint32_t price_ns)
{
    uint32_t count = trials_count(trials);
    if (count < TRIALS_LEAST)
        return now;
    unsigned best = now;
    int64_t best_saves = patience_saves(trials, now, age_ms, price_ns) + (int64_t)count * (TRIAL_FAULTS_NS / CLEARLY_PART);
    for (unsigned other = 0; other <= PATIENCE_NONE; other++) {
        int64_t saves = patience_saves(trials, other, age_ms, price_ns);
        if (saves > best_saves) {
            best = other;
            best_saves = saves;
        }
    }
    return best;
}
