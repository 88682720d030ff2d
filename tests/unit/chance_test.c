/* base/chance.h against libm, and that what it draws is distributed as it says. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>

#include "base/chance.h"
#include "random.h"

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-8 * fabs(b);
}

static void waits_are_logarithms(void)
{
    uint64_t seed = 3;
    for (int i = 0; i < 200000; i++) {
        uint64_t random = random_next(&seed) >> random_below(&seed, 64);
        double uniform = ldexp((double)((random >> 11) + 1), -53);
        double wait = chance_wait(random);
        CHECK(is_near(wait, -log(uniform)) || fabs(wait + log(uniform)) < 1e-9);
    }
    CHECK(chance_wait(UINT64_MAX) == 0);
    CHECK(is_near(chance_wait(0), 53 * log(2)));
}

static void probabilities_are_exponential(void)
{
    CHECK(chance_within(0) == 0);
    for (double x = 1e-12; x < 100; x *= 1.01)
        CHECK(is_near(chance_within(x), -expm1(-x)));
    CHECK(chance_within(1e300) == 1);
}

static void waits_have_mean_and_deviation_one(void)
{
    enum { DRAWS = 1000000 };
    uint64_t seed = 4;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double wait = chance_wait(random_next(&seed));
        sum += wait;
        squares += wait * wait;
    }
    CHECK(fabs(sum / DRAWS - 1) < 4e-3);
    CHECK(fabs(squares / DRAWS - 2) < 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(waits_are_logarithms),
        UNIT_TEST(probabilities_are_exponential),
        UNIT_TEST(waits_have_mean_and_deviation_one),
    };
    return cmocka_run_group_tests_name("chance", tests, NULL, NULL);
}
