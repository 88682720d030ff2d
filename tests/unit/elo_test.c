/* learn/elo.h: ratings of policies that compete. */
#include "unit.h"

#include "base/chance.h"
#include "learn/elo.h"

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

static double uniform(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (double)(*random >> 11) / (double)((uint64_t)1 << 53);
}

/* The example in Glickman's paper: 1500 ± 200, one opponent of 1400 ± 30, won. Of three opponents the paper updates at
 * once; with one it says 0.639 for the expectation and g(30) = 0.9955. */
static void follows_glickman(void)
{
    struct elo a = {.rating = 1500, .deviation = 200};
    struct elo b = {.rating = 1400, .deviation = 30};
    CHECK(distance(elo_expected(1500, &b), 0.639) < 0.0006);
    struct elo third = {.rating = 1700, .deviation = 300};
    CHECK(distance(elo_expected(1500, &third), 0.303) < 0.0006);
    elo_match(&a, &b, 1);
    /* By hand: 1/d² = 7.9005e-6 · 0.9911, precision 2.5e-5 + 7.583e-6, step 0.0057565 / 3.2583e-5 · 0.9955 · 0.361. */
    CHECK(distance(a.rating, 1563.5) < 0.5);
    CHECK(distance(a.deviation, 175.2) < 0.5);
    CHECK(a.matches == 1 && b.matches == 1 && b.rating < 1400);
}

static void a_draw_of_equals_moves_nothing(void)
{
    struct elo a = elo_unknown();
    struct elo b = elo_unknown();
    elo_match(&a, &b, 0.5);
    CHECK(a.rating == ELO_FIRST && b.rating == ELO_FIRST);
    CHECK(a.deviation < ELO_DEVIATION_MOST);
}

static void expectations_sum_to_one(void)
{
    for (double r = 0; r <= 3000; r += 100) {
        struct elo a = {.rating = r, .deviation = 100};
        struct elo b = {.rating = 1500, .deviation = 100};
        CHECK(distance(elo_expected(a.rating, &b) + elo_expected(b.rating, &a), 1) < 1e-9);
    }
}

static void scores_beyond_are_cut(void)
{
    struct elo a = elo_unknown();
    struct elo b = elo_unknown();
    struct elo c = elo_unknown();
    struct elo d = elo_unknown();
    elo_match(&a, &b, 7);
    elo_match(&c, &d, 1);
    CHECK(a.rating == c.rating && b.rating == d.rating);
}

/* Ten players whose strengths are 60 points apart: after many matches they stand in order, and the deviations say how sure. */
static void finds_the_order(void)
{
    enum { PLAYERS = 10, MATCHES = 3000 };
    struct elo players[PLAYERS];
    struct elo truth[PLAYERS];
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < PLAYERS; i++) {
        players[i] = elo_unknown();
        truth[i] = (struct elo){.rating = 1230 + 60 * i, .deviation = 0};
    }
    for (int n = 0; n < MATCHES; n++) {
        int a = (int)(uniform(&random) * PLAYERS);
        int b = (a + 1 + (int)(uniform(&random) * (PLAYERS - 1))) % PLAYERS;
        double chance = elo_expected(truth[a].rating, &truth[b]);
        elo_match(&players[a], &players[b], uniform(&random) < chance ? 1 : 0);
    }
    int wrong = 0;
    for (int i = 0; i < PLAYERS; i++) {
        CHECK(players[i].deviation == ELO_DEVIATION_LEAST);
        wrong += distance(players[i].rating, truth[i].rating) > 2 * ELO_DEVIATION_LEAST ? 1 : 0;
        for (int j = 0; j + 2 < i; j++)
            CHECK(players[j].rating < players[i].rating);
    }
    CHECK(wrong <= 2);
}

static void forgetting_is_bounded(void)
{
    struct elo elo = {.rating = 1700, .deviation = ELO_DEVIATION_LEAST};
    double before = elo_hope(&elo);
    elo_forget(&elo);
    CHECK(elo.rating == 1700 && elo.deviation > ELO_DEVIATION_LEAST && elo_hope(&elo) > before);
    for (int i = 0; i < 100; i++)
        elo_forget(&elo);
    CHECK(elo.deviation == ELO_DEVIATION_MOST);
    struct elo child = elo_of_child(&(struct elo){.rating = 1600, .deviation = 50});
    CHECK(child.rating == 1600 && child.deviation > 200 && child.matches == 0);
}

static void stays_finite(void)
{
    struct elo a = {.rating = 1500, .deviation = ELO_DEVIATION_LEAST};
    struct elo b = {.rating = 1500, .deviation = ELO_DEVIATION_LEAST};
    for (int i = 0; i < 1000000; i++)
        elo_match(&a, &b, 1);
    CHECK(a.rating > 2500 && a.rating < 10000 && b.rating > -7000 && b.rating < 500);
    CHECK(elo_expected(1e9, &b) > 0.999999 && elo_expected(-1e9, &b) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_glickman),
        UNIT_TEST(a_draw_of_equals_moves_nothing),
        UNIT_TEST(expectations_sum_to_one),
        UNIT_TEST(scores_beyond_are_cut),
        UNIT_TEST(finds_the_order),
        UNIT_TEST(forgetting_is_bounded),
        UNIT_TEST(stays_finite),
    };
    return cmocka_run_group_tests_name("elo", tests, NULL, NULL);
}
