/*
 * learn/learner.h on simulated programs (program.h): how soon it comes near the best fixed policy, what that costs on the way,
 * and what a program can do to it that is made to hurt it.
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
static const struct phase valleys = {.valley = 200, .valley_ms = 3000, .base = 2000};

/* One that they fit. */
static const struct phase modest = {.large = 0.05, .working_set = 8, .interval_ms = 5, .refills = {2, 2}, .threads = 2,
                                    .base = 20000};

struct regret {
    double of_mode;  /* what the mode's values cost more than the best fixed policy, as a share */
    double mean;     /* what the learner's run costs more */
    double worst;
    double at_end;   /* the same of the best that it knows at the end, on average */
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
        regret.at_end += end / SEEDS;
    }
    printf("%-14s %6lu ms: mode %+7.1f %%, learner %+6.1f %% (worst %+6.1f %%), at the end %+5.1f %%\n", name,
           (unsigned long)ms, regret.of_mode * 100, regret.mean * 100, regret.worst * 100, regret.at_end * 100);
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
    CHECK(regret.at_end < 0.15 && regret.mean < regret.of_mode / 5);
}

static void learns_to_keep_less(void)
{
    struct regret regret = regret_of("hoard", &hoard, 60000);
    CHECK(regret.at_end < 0.10 && regret.mean < regret.of_mode / 4);
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

/* Two phases in turn, each badly served by what is best in the other; the second time each is known. */
static void comes_back_after_a_phase_change(void)
{
    double first = 0;
    double again = 0;
    double mode = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run;
        run_begin(&run, seed, NOISE);
        run_for(&run, &many_large, 5000);
        for (int change = 0; change < 6; change++) {
            const struct phase *phase = change % 2 == 0 ? &many_refills : &many_large;
            run_for(&run, phase, 2000);
            double *of = change < 2 ? &first : &again;
            *of += now(&run, phase) / SEEDS / (change < 2 ? 2 : 4);
            run_for(&run, phase, 8000);
            mode += (run.mode_cost / run.best_cost - 1) / SEEDS / 6;
        }
    }
    printf("two phases: 2 s after a change %+.1f %% at first, %+.1f %% when both are known; mode %+.1f %%\n", first * 100,
           again * 100, mode * 100);
    (void)fflush(stdout);
    CHECK(first < 1 && again < 0.1);
}

/* Two things by turns, each for longer than the shortest epoch: an epoch must see both. */
static void epochs_become_as_long_as_what_comes_by_turns(void)
{
    enum { PIECE_MS = 10, TURN_MS = 70, PIECES = 6000 };
    static const struct phase small = {.base = 2000, .refills = {4, 4}, .threads = 2};
    double cost = 0;
    double mode_cost = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static const struct arm mode;
        struct run run;
        struct epoch epoch = {.ms = 0};
        run_begin(&run, seed, NOISE);
        for (int piece = 0; piece < PIECES; piece++) {
            const struct phase *phase = piece * PIECE_MS / TURN_MS % 2 == 0 ? &many_large : &small;
            const struct arm *arm = learner_arm(&run.learner);
            struct epoch more = program_epoch(phase, arm, PIECE_MS, NOISE, &run.random);
            more.end_ms = (uint64_t)(piece + 1) * PIECE_MS;
            epoch_add(&epoch, &more);
            cost += program_cost(phase, arm);
            mode_cost += program_cost(phase, &mode);
            if (epoch.ms < (uint64_t)20 << run.learner.stretch || epoch.ms < 2 * learner_delay_ms(&run.learner))
                continue;
            learner_step(&run.learner, &epoch);
            epoch = (struct epoch){.ms = 0};
        }
        CHECK(run.learner.stretch >= 2);
    }
    printf("by turns: %+.1f %% of what the mode's values cost\n", (cost / mode_cost - 1) * 100);
    (void)fflush(stdout);
    CHECK(cost < mode_cost / 2);
}

/* What a run has lost against the mode's values so far, and what the process has worked. */
struct loss {
    double ns;
    double worked_ns;
    double epoch_ns; /* of the dearest epoch with the mode's values */
};

static void add_loss(struct loss *loss, struct run *run, const struct phase *phase)
{
    static const struct arm mode;
    run->cost = run->mode_cost = run->worked_ns = 0;
    run_epoch(run, phase, &mode);
    loss->ns += run->cost - run->mode_cost;
    loss->worked_ns += run->worked_ns;
    loss->epoch_ns = run->mode_cost > loss->epoch_ns ? run->mode_cost : loss->epoch_ns;
}

/* The phase in which a policy loses most. */
static const struct phase *worst_phase(const struct arm *arm)
{
    static const struct phase *const all[] = {&many_large, &many_refills, &hoard, &modest};
    static const struct arm mode;
    const struct phase *worst = &many_large;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (program_cost(all[i], arm) - program_cost(all[i], &mode) > program_cost(worst, arm) - program_cost(worst, &mode))
            worst = all[i];
    return worst;
}

/* A program that knows, before each epoch, which policy is in force in it. */
static void the_worst_program_is_bounded(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run;
        struct loss loss = {0};
        run_begin(&run, seed, NOISE);
        while (run.now_ms < 120000)
            add_loss(&loss, &run, worst_phase(learner_arm(&run.learner)));
        if (seed == 1)
            printf("worst program: loses %.2f %% of its time, %u kills, %u matches\n", loss.ns / loss.worked_ns * 100,
                   run.learner.kills, run.learner.matches);
        CHECK(loss.ns < loss.worked_ns * 0.01 + 16 * loss.epoch_ns);
    }
    (void)fflush(stdout);
}

/* One that lures it into a policy, and then does what that is worst for, until something else is in force. */
static void luring_is_bounded(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run;
        struct loss loss = {0};
        const struct phase *phase = &many_large;
        run_begin(&run, seed, NOISE);
        while (run.now_ms < 120000) {
            unsigned champion = run.learner.champion;
            add_loss(&loss, &run, phase);
            if (run.learner.champion != champion || run.learner.state == LEARNER_FROZEN)
                phase = worst_phase(&run.learner.arms[run.learner.champion]);
        }
        if (seed == 1)
            printf("luring program: loses %.2f %% of its time, %u kills, %u drifts, %u rollbacks\n",
                   loss.ns / loss.worked_ns * 100, run.learner.kills, run.learner.drifts, run.learner.rollbacks);
        CHECK(loss.ns < loss.worked_ns * 0.01 + 32 * loss.epoch_ns);
        CHECK(loss.ns > 0 || run.learner.kills == 0); /* what wins more than it loses pays */
    }
    (void)fflush(stdout);
}

/* Noise in which two per cent are lost, which is all that there is to win: what comes into force by mistake costs nothing that
 * matters. */
static void noise_teaches_nothing(void)
{
    static const struct arm mode;
    struct run run;
    unsigned mistakes = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_begin(&run, seed, 0.5);
        run_for(&run, &modest, 60000);
        const struct arm *champion = &run.learner.arms[run.learner.champion];
        mistakes += program_cost(&modest, champion) > program_cost(&modest, &mode) ? 1 : 0;
        CHECK(run.cost < run.mode_cost * 1.01);
    }
    printf("noise: %u of %d runs end with a policy that costs more than the mode's\n", mistakes, SEEDS);
    (void)fflush(stdout);
    CHECK(mistakes <= SEEDS / 10);
}

static void the_same_seed_learns_the_same(void)
{
    struct run first, second, other;
    run_begin(&first, 7, NOISE);
    run_begin(&second, 7, NOISE);
    run_begin(&other, 8, NOISE);
    run_for(&first, &many_refills, 5000);
    run_for(&second, &many_refills, 5000);
    run_for(&other, &many_refills, 5000);
    CHECK(first.cost == second.cost && first.learner.matches == second.learner.matches);
    CHECK(arm_says_the_same(&first.learner.arms[first.learner.champion], &second.learner.arms[second.learner.champion]));
    CHECK(other.cost != first.cost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(learns_to_keep_large_blocks),
        UNIT_TEST(learns_to_widen_magazines),
        UNIT_TEST(learns_to_keep_less),
        UNIT_TEST(learns_when_to_purge),
        UNIT_TEST(leaves_a_modest_program_alone),
        UNIT_TEST(comes_back_after_a_phase_change),
        UNIT_TEST(epochs_become_as_long_as_what_comes_by_turns),
        UNIT_TEST(the_worst_program_is_bounded),
        UNIT_TEST(luring_is_bounded),
        UNIT_TEST(noise_teaches_nothing),
        UNIT_TEST(the_same_seed_learns_the_same),
    };
    return cmocka_run_group_tests_name("learner_sim", tests, NULL, NULL);
}
