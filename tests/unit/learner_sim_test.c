/*
 * learn/learner.h on simulated programs (program.h): how soon it comes near the best fixed policy, what that costs on the way, and what
 * a program can do to it that is made to hurt it.
 */
#include "unit.h"

#include <stdio.h>

#include "program.h"

enum { SEEDS = 20 };

#define NOISE 0.03

/* Programs that the mode's values fit badly, one each in another way. */
static const struct phase many_large = {.large = 0.5, .working_set = 200, .interval_ms = 5, .base = 2000};
static const struct phase many_refills = {.refills = {40, 20}, .threads = 2, .base = 1000};
static const struct phase hoard = {.large = 0.01, .working_set = 400, .interval_ms = 2000, .base = 500};
static const struct phase valleys = {.valley = 40, .valley_ms = 3000, .base = 2000};

/* One that they fit. */
static const struct phase modest = {.large = 0.05, .working_set = 8, .interval_ms = 5, .refills = {2, 2}, .threads = 2, .base = 20000};

struct regret {
    double of_mode;  /* what the mode's values cost more than the best fixed policy, as a share */
    double mean;     /* what the learner's run costs more */
    double worst;
    double at_end;   /* the same of what is in force at the end, at worst */
};

static double now(const struct run *run, const struct phase *phase)
{
    struct arm best;
    program_best(phase, &best);
    return program_cost(phase, &run->learner.arms[run->learner.champion]) / program_cost(phase, &best) - 1;
}

static struct regret regret_of(const char *name, const struct phase *phase, uint64_t ms)
{
    struct regret regret = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run;
        run_begin(&run, seed, NOISE);
        run_for(&run, phase, ms);
        double this = run.cost / run.best_cost - 1;
        double end = now(&run, phase);
        regret.of_mode = run.mode_cost / run.best_cost - 1;
        regret.mean += this / SEEDS;
        regret.worst = this > regret.worst ? this : regret.worst;
        regret.at_end = end > regret.at_end ? end : regret.at_end;
    }
    printf("%-14s %6lu ms: mode %+7.1f %%, learner %+6.1f %% (worst %+6.1f %%), at the end at most %+5.1f %%\n", name, (unsigned long)ms,
           regret.of_mode * 100, regret.mean * 100, regret.worst * 100, regret.at_end * 100);
    (void)fflush(stdout);
    return regret;
}

static void learns_to_keep_large_blocks(void)
{
    CHECK(regret_of("many large", &many_large, 1000).at_end < 0.05);
    struct regret regret = regret_of("many large", &many_large, 10000);
    CHECK(regret.of_mode > 5 && regret.mean < regret.of_mode / 8);
}

static void learns_to_widen_magazines(void)
{
    struct regret regret = regret_of("many refills", &many_refills, 10000);
    CHECK(regret.at_end < 0.05 && regret.mean < regret.of_mode / 2);
}

static void learns_to_keep_less(void)
{
    struct regret regret = regret_of("hoard", &hoard, 60000);
    CHECK(regret.at_end < 0.10 && regret.mean < regret.of_mode / 2);
}

static void learns_when_to_purge(void)
{
    struct regret regret = regret_of("valleys", &valleys, 300000);
    CHECK(regret.at_end < 0.05 && regret.mean < regret.of_mode);
}

static void leaves_a_modest_program_alone(void)
{
    struct regret regret = regret_of("modest", &modest, 20000);
    CHECK(regret.mean < regret.of_mode + 0.01 && regret.worst < regret.of_mode + 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(learns_to_keep_large_blocks), UNIT_TEST(learns_to_widen_magazines), UNIT_TEST(learns_to_keep_less),
        UNIT_TEST(learns_when_to_purge),        UNIT_TEST(leaves_a_modest_program_alone),
    };
    return cmocka_run_group_tests_name("learner_sim", tests, NULL, NULL);
}
