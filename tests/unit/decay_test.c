/* span/decay.h: when memory is given back. */
#include "unit.h"

#include "span/decay.h"

enum { DELAY = 1000, DOUBLINGS = 3, HOUR = 3600000 };

static uint64_t kept_ms(const struct decay *decay)
{
    return HOUR - decay_horizon(decay, HOUR, DELAY);
}

/* One delay later: so much was given back, and so much of it regretted. */
static void step(struct decay *decay, size_t given_back, size_t regretted)
{
    decay->given_back += given_back;
    decay->regretted += regretted;
    decay_learn(decay, decay->step_ms + DELAY, DELAY, DOUBLINGS);
}

static void keeps_for_one_delay_at_first(void)
{
    struct decay decay = {0};
    CHECK(kept_ms(&decay) == DELAY);
    CHECK(decay_horizon(&decay, DELAY / 2, DELAY) == 0);
    CHECK(decay_horizon(&decay, HOUR, 0) == HOUR);
}

static void regret_doubles_up_to_eight(void)
{
    struct decay decay = {0};
    uint64_t expected = DELAY;
    for (int i = 0; i < 6; i++) {
        step(&decay, 100, 90);
        expected = expected < 8 * DELAY ? 2 * expected : expected;
        CHECK(kept_ms(&decay) == expected);
    }
}

static void a_lower_limit_takes_effect_at_the_next_step(void)
{
    struct decay decay = {0};
    for (int i = 0; i < DOUBLINGS; i++)
        step(&decay, 100, 90);
    decay.given_back = decay.regretted = 100;
    decay_learn(&decay, decay.step_ms + DELAY, DELAY, 1);
    CHECK(kept_ms(&decay) == 2 * DELAY);
    decay_learn(&decay, decay.step_ms + DELAY, DELAY, 0);
    CHECK(kept_ms(&decay) == DELAY);
}

/* Read before another thread has made the step. */
static void an_old_time_is_no_step(void)
{
    struct decay decay = {0};
    step(&decay, 100, 90);
    decay.given_back = decay.regretted = 100;
    decay_learn(&decay, decay.step_ms - 1, DELAY, DOUBLINGS);
    CHECK(decay.step_ms == DELAY && decay.regretted == 100 && kept_ms(&decay) == 2 * DELAY);
}

static void little_regret_changes_nothing(void)
{
    struct decay decay = {0};
    for (int i = 0; i < 100; i++)
        step(&decay, 100, 20);
    CHECK(kept_ms(&decay) == DELAY);
}

static void calm_takes_it_back(void)
{
    struct decay decay = {0};
    step(&decay, 100, 90);
    step(&decay, 100, 90);
    CHECK(kept_ms(&decay) == 4 * DELAY);
    int steps = 0;
    while (kept_ms(&decay) > DELAY && steps < 1000) {
        step(&decay, 0, 0);
        steps++;
    }
    CHECK(steps > 8 && steps < 100);
    for (int i = 0; i < 100; i++)
        step(&decay, 0, 0);
    CHECK(kept_ms(&decay) == DELAY);
}

static void learns_once_in_a_delay(void)
{
    struct decay decay = {.step_ms = HOUR, .given_back = 100, .regretted = 100};
    decay_learn(&decay, HOUR + DELAY - 1, DELAY, DOUBLINGS);
    CHECK(kept_ms(&decay) == DELAY && decay.regretted == 100);
    decay_learn(&decay, HOUR + DELAY, DELAY, DOUBLINGS);
    CHECK(kept_ms(&decay) == 2 * DELAY && decay.regretted == 0);
}

static void only_soon_is_regret(void)
{
    CHECK(!decay_is_regret(HOUR, 0, DELAY)); /* never given back */
    CHECK(decay_is_regret(HOUR, HOUR, DELAY));
    CHECK(decay_is_regret(HOUR, HOUR - 8 * DELAY, DELAY));
    CHECK(!decay_is_regret(HOUR, HOUR - 8 * DELAY - 1, DELAY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(keeps_for_one_delay_at_first), UNIT_TEST(regret_doubles_up_to_eight),
        UNIT_TEST(a_lower_limit_takes_effect_at_the_next_step),
        UNIT_TEST(an_old_time_is_no_step),
        UNIT_TEST(little_regret_changes_nothing), UNIT_TEST(calm_takes_it_back), UNIT_TEST(learns_once_in_a_delay),
        UNIT_TEST(only_soon_is_regret),
    };
    return cmocka_run_group_tests_name("decay", tests, NULL, NULL);
}
