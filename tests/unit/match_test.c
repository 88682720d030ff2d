/* learn/epoch.h and learn/match.h: what an epoch costs, and which of two policies costs less. */
#include "unit.h"

#include "base/bits.h"
#include "learn/match.h"

enum { ROUNDS = 20000 };

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

/* An epoch of one MiB that costs so much. */
static struct epoch costing(uint64_t ns)
{
    struct epoch epoch = {.requested = MIB, .ms = 10};
    epoch.ns[COST_REFILLS] = ns;
    epoch.refills[3] = 100;
    return epoch;
}

static enum match_progress add(struct match *match, uint64_t ns)
{
    struct epoch epoch = costing(ns);
    return match_add(match, &epoch);
}

static struct match_result result_of(bool b_first, uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3)
{
    struct match match;
    match_begin(&match, b_first);
    CHECK(add(&match, c0) == MATCH_GOES_ON);
    CHECK(add(&match, c1) == MATCH_GOES_ON);
    CHECK(add(&match, c2) == MATCH_GOES_ON);
    CHECK(add(&match, c3) == MATCH_OVER);
    return match_result(&match);
}

static void costs_are_by_requested_bytes(void)
{
    struct epoch epoch = costing(500);
    epoch.ns[COST_FAULTS] = 1500;
    CHECK(epoch_ns(&epoch) == 2000 && epoch_cost(&epoch) == 2000);
    epoch.requested = 4 * MIB;
    CHECK(epoch_cost(&epoch) == 500);
    epoch.work_ns = 8000000;
    CHECK(epoch_compared_cost(&epoch) == 500 + 2000);
    struct epoch sum = {0};
    epoch.held_ms[COST_KEPT] = 70;
    epoch_add(&sum, &epoch);
    epoch_add(&sum, &epoch);
    CHECK(epoch_cost(&sum) == 500 && sum.refills[3] == 200 && epoch_held(&sum, COST_KEPT) == 7);
    epoch_fade(&sum);
    CHECK(epoch_cost(&sum) == 500 && sum.requested == 4 * MIB);
    CHECK(epoch_cost(&(struct epoch){0}) == 0 && epoch_compared_cost(&(struct epoch){0}) == 0 && epoch_held(&(struct epoch){0}, COST_KEPT) == 0);
}

static void sides_take_turns(void)
{
    struct match match;
    for (int b_first = 0; b_first < 2; b_first++) {
        match_begin(&match, b_first);
        for (int i = 0; i < MATCH_EPOCHS; i++) {
            CHECK(match_turn(&match) == ((i + b_first) % 2 == 0 ? SIDE_A : SIDE_B));
            (void)add(&match, 1000);
        }
    }
}

static void tells_which_costs_less(void)
{
    struct match_result result = result_of(false, 1000, 900, 1000, 900);
    CHECK(distance(match_share(result.gain), 0.1) < 1e-9 && result.noise == 0 && result.a_cost == 1000 && result.b_cost == 900);
    result = result_of(true, 900, 1000, 900, 1000);
    CHECK(distance(match_share(result.gain), 0.1) < 1e-9 && result.noise == 0 && result.a_cost == 1000 && result.b_cost == 900);
    CHECK(distance(match_share(result_of(false, 1000, 1200, 1000, 1200).gain), -0.2) < 1e-9);
    CHECK(result_of(false, 0, 0, 0, 0).gain == 0);
}

static void a_steady_rise_is_no_result(void)
{
    CHECK(distance(result_of(false, 1000, 1100, 1200, 1300).gain, 0) < 1e-9);
    CHECK(distance(result_of(true, 1000, 1100, 1200, 1300).gain, 0) < 1e-9);
    double mean = (1000 + 1000 + 1200 + 1200) / 4.;
    CHECK(distance(result_of(false, 1000, 1100 - 100, 1200, 1300 - 100).gain, 100 / mean) < 1e-9);
}

static double uniform(uint64_t *random)
{
    *random = next_xorshift(*random);
    return (double)(*random >> 11) / (double)((uint64_t)1 << 53);
}

/* Over many matches of two equal policies: the mean is nothing, and noise and variance are what the header says. */
static void noise_is_that_of_an_epoch(void)
{
    uint64_t random = 4711;
    double sum = 0;
    double squares = 0;
    double noise = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t c[MATCH_EPOCHS];
        for (int i = 0; i < MATCH_EPOCHS; i++)
            c[i] = 100000 + (uint64_t)(20000 * uniform(&random)); /* deviation: 20000 / sqrt(12), 5.25 % of the mean */
        struct match_result result = result_of(round % 2 != 0, c[0], c[1], c[2], c[3]);
        sum += result.gain;
        squares += result.gain * result.gain;
        noise += result.noise * result.noise;
    }
    double variance = 20000. * 20000 / 12 / (110000. * 110000);
    CHECK(distance(sum / ROUNDS, 0) < 0.001);
    CHECK(distance(noise / ROUNDS / variance, 1) < 0.05);
    CHECK(distance(squares / ROUNDS / variance, MATCH_VARIANCE) < 0.06);
}

static void an_epoch_that_changed_is_thrown_away(void)
{
    struct match match;
    struct epoch changed = costing(90000);
    changed.changed = true;
    match_begin(&match, false);
    (void)add(&match, 1000);
    CHECK(match_turn(&match) == SIDE_B && match_add(&match, &changed) == MATCH_GOES_ON && match_turn(&match) == SIDE_B);
    (void)add(&match, 900);
    (void)add(&match, 1000);
    CHECK(add(&match, 900) == MATCH_OVER && distance(match_share(match_result(&match).gain), 0.1) < 1e-9);
    match_begin(&match, false);
    int thrown = 1;
    while (match_add(&match, &changed) == MATCH_GOES_ON)
        thrown++;
    CHECK(thrown == 4);
}

/* Whoever plays while the process is stopped holds memory for as long. */
static void a_pause_is_thrown_away(void)
{
    struct match match;
    struct epoch epoch = costing(1000);
    struct epoch paused = costing(9000000);
    epoch.work_ns = paused.work_ns = 10000;
    paused.ms = 90 * epoch.ms;
    match_begin(&match, false);
    CHECK(match_add(&match, &epoch) == MATCH_GOES_ON && match_add(&match, &paused) == MATCH_GOES_ON);
    CHECK(match.played == 1 && match_turn(&match) == SIDE_B);
    match_begin(&match, false);
    CHECK(match_add(&match, &paused) == MATCH_GOES_ON && match_add(&match, &epoch) == MATCH_GOES_ON);
    CHECK(match.played == 0 && match_turn(&match) == SIDE_A);
    /* Where all epochs are as long, that is how the program works. */
    for (int i = 1; i < MATCH_EPOCHS; i++)
        CHECK(match_add(&match, &paused) == MATCH_GOES_ON);
    CHECK(match_add(&match, &paused) == MATCH_OVER);
    CHECK(match_share(2.5) == 1);
}

static void another_phase_makes_it_void(void)
{
    struct match match;
    struct epoch other = costing(1000);
    other.refills[3] = 0;
    other.large[4] = 100;
    match_begin(&match, false);
    (void)add(&match, 1000);
    (void)add(&match, 1000);
    CHECK(match_add(&match, &other) == MATCH_VOID);
    match_begin(&match, false);
    (void)add(&match, 1000);
    (void)add(&match, 5000); /* the other side may cost what it likes */
    CHECK(add(&match, 3500) == MATCH_VOID);
}

static void sizes_tell_phases_apart(void)
{
    uint32_t refills[SIZE_CLASSES] = {0};
    uint32_t large[SIZE_BINS] = {0};
    size_class_init();
    refills[2] = 1000;
    refills[20] = 1000;
    struct mix first = mix_of(refills, large);
    refills[2] = 500; /* its magazine is twice as large */
    struct mix wider = mix_of(refills, large);
    CHECK(!mix_differs(&first, &wider) && !mix_differs(&wider, &first));
    large[5] = 3000;
    struct mix other = mix_of(refills, large);
    CHECK(mix_differs(&first, &other) && mix_differs(&other, &first));
    large[5] = refills[2] = 0;
    refills[20] = 10;
    struct mix few = mix_of(refills, large);
    CHECK(!mix_differs(&first, &few) && !mix_differs(&few, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(costs_are_by_requested_bytes),
        UNIT_TEST(sides_take_turns),
        UNIT_TEST(tells_which_costs_less),
        UNIT_TEST(a_steady_rise_is_no_result),
        UNIT_TEST(noise_is_that_of_an_epoch),
        UNIT_TEST(an_epoch_that_changed_is_thrown_away),
        UNIT_TEST(a_pause_is_thrown_away),
        UNIT_TEST(another_phase_makes_it_void),
        UNIT_TEST(sizes_tell_phases_apart),
    };
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
