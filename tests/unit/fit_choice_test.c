/* learn/fit_choice.h: which size is chosen, what a slab of its own weighs, and that what is opened is not closed for the same
 * reasons. */
#include "unit.h"

#include "base/bits.h"
#include "config/size_class.h"
#include "learn/fit_choice.h"
#include "learn/fit_sizes.h"
#include "random.h"
#include "scale.h"

static uint32_t seen[FIT_STEPS];

/* Blocks of the class that serves 1025 to 1280 bytes. */
static struct fit_range range(uint64_t out)
{
    size_class_init();
    return (struct fit_range){.above = 1024, .size = 1280, .out = out, .heaps = 1, .seen = seen, .refills = 100};
}

static void one_bad_size(void)
{
    seen[fit_step(1030)] = 50;
    struct fit_range bad = range(10000);
    CHECK(fit_waste(&bad, 20 * MIB) == 10000 * 240);
    struct fit_offer best = fit_best(&bad);
    CHECK(best.size == 1040);
    CHECK(best.saves > 10000 * 1280 / 8 && best.saves < 10000 * 1280 / 4);
    CHECK(fit_is_worth(&best, 20 * MIB, 0));
}

static void sizes_that_fit(void)
{
    seen[fit_step(1280)] = 50;
    seen[fit_step(1270)] = 50;
    struct fit_range good = range(10000);
    CHECK(fit_waste(&good, 20 * MIB) == 0);
    struct fit_offer none = fit_best(&good);
    CHECK(none.size == 0 && !fit_is_worth(&none, 20 * MIB, 0));
}

/* A size that is larger, but asked for more often, may save more. */
static void the_best_of_two(void)
{
    seen[fit_step(1040)] = 10;
    seen[fit_step(1136)] = 90;
    struct fit_range both = range(10000);
    CHECK(fit_best(&both).size == 1136);
    seen[fit_step(1040)] = 90;
    seen[fit_step(1136)] = 10;
    CHECK(fit_best(&both).size == 1040);
}

static void few_blocks_are_not_worth_a_slab(void)
{
    seen[fit_step(1040)] = 50;
    struct size_class fitting = size_class_geometry(1040);
    uint64_t slab = fitting.units * UNIT_SIZE;
    struct fit_range few = range(slab / 240);
    struct fit_offer best = fit_best(&few);
    CHECK(!fit_is_worth(&best, 0, 0));
    few.out = 4 * slab / 240;
    best = fit_best(&few);
    CHECK(fit_is_worth(&best, 0, 0));
    /* In each of many heaps. */
    few.heaps = 16;
    best = fit_best(&few);
    CHECK(!fit_is_worth(&best, 0, 0));
}

static void little_of_what_is_held_is_left_alone(void)
{
    seen[fit_step(1040)] = 50;
    struct fit_range some = range(10000);
    struct fit_offer best = fit_best(&some);
    CHECK(fit_waste(&some, 4096 * MIB) == 0);
    CHECK(!fit_is_worth(&best, 4096 * MIB, 0));
}

static void little_is_known(void)
{
    seen[fit_step(1040)] = 50;
    struct fit_range guess = range(10000);
    guess.refills = 3;
    CHECK(fit_waste(&guess, 20 * MIB) == 0);
}

static void what_failed_has_to_save_more(void)
{
    seen[fit_step(1040)] = 50;
    struct fit_range again = range(1000);
    struct fit_offer best = fit_best(&again);
    CHECK(fit_is_worth(&best, 0, 0));
    unsigned failures = 0;
    while (fit_is_worth(&best, 0, failures))
        failures++;
    CHECK(failures > 0 && failures < 8);
    CHECK(!fit_is_worth(&best, 0, 1000000));
}

/* Of slabs that hold few blocks more is lost to those that are partly free. */
static void what_has_few_blocks_to_a_slab_has_to_save_more(void)
{
    struct fit_offer small = {.size = 4096, .saves = 300000, .costs = 100000};
    struct fit_offer large = {.size = 5120, .saves = 300000, .costs = 100000};
    CHECK(fit_is_worth(&small, 0, 0) && !fit_is_worth(&large, 0, 0));
    large.saves = 900000;
    CHECK(fit_is_worth(&large, 0, 0) && !fit_is_worth(&large, 0, 1));
}

/* In between, what is open stays open and what is closed stays closed. */
static void opening_and_closing_are_apart(void)
{
    uint64_t opens = 0;
    uint64_t closes = 0;
    seen[fit_step(1040)] = 50;
    for (uint64_t out = 1; out < 100000; out += 1 + out / 64) {
        struct fit_range wide = range(out);
        struct fit_range own = wide;
        own.size = 1040;
        struct fit_offer best = fit_best(&wide);
        struct fit_offer kept = fit_of_class(&own, 1280);
        if (opens == 0 && fit_is_worth(&best, 0, 0))
            opens = out;
        if (fit_is_vain(&kept))
            closes = out;
    }
    CHECK(closes > 0 && opens > 3 * closes);
}

static void cut_in_two(void)
{
    seen[fit_step(1040)] = 30;
    seen[fit_step(1200)] = 10;
    struct fit_range whole = range(4000);
    struct fit_range upper = whole;
    struct fit_range lower = fit_cut(&upper, 1040);
    CHECK(lower.above == 1024 && lower.size == 1040 && lower.out == 3000);
    CHECK(upper.above == 1040 && upper.size == 1280 && upper.out == 1000);
    struct fit_range rest = fit_cut(&upper, 1280);
    CHECK(rest.above == 1040 && rest.size == 1280 && rest.out == 1000);
}

static void the_worst_come_first(void)
{
    struct fit_worst worst = {0};
    uint64_t seed = 3;
    uint64_t most[FIT_WORST] = {0};
    seen[fit_step(1040)] = 50;
    for (int i = 0; i < 100; i++) {
        struct fit_range one = range(100 + random_below(&seed, 100000));
        fit_rank(&worst, &one, 0);
        uint64_t waste = one.out * 240;
        for (int at = 0; at < FIT_WORST; at++) {
            if (waste <= most[at])
                continue;
            uint64_t next = most[at];
            most[at] = waste;
            waste = next;
        }
        for (int at = 0; at < FIT_WORST; at++)
            CHECK(worst.waste[at] == most[at] && worst.range[at].out * 240 == most[at]);
    }
}

/* Against every size between: none saves more, whatever is asked for. */
static void no_size_is_better(void)
{
    uint64_t seed = 9;
    for (size_t i = 0; i < scaled_work(300); i++) {
        struct fit_range any = range(random_below(&seed, 1000000));
        any.heaps = 1 + (uint32_t)random_below(&seed, 4);
        uint64_t sum = 0;
        for (size_t step = 65; step <= 80; step++) {
            seen[step] = random_below(&seed, 3) == 0 ? (uint32_t)random_below(&seed, 1000) : 0;
            sum += seen[step];
        }
        struct fit_offer best = fit_best(&any);
        struct size_class wide = size_class_geometry(1280);
        double promised = (double)(best.saves - best.costs);
        bool is_kept = best.size == 0;
        uint64_t below = 0;
        for (size_t step = 65; step < 80; step++) {
            below += seen[step];
            struct size_class own = size_class_geometry(step * 16);
            double less = (double)(wide.units * UNIT_SIZE / wide.blocks) - (double)(own.units * UNIT_SIZE / own.blocks);
            double blocks = sum == 0 ? 0 : (double)any.out * (double)below / (double)sum;
            double saves = blocks * less - (double)(any.heaps * own.units * UNIT_SIZE);
            CHECK(saves <= promised + 2000);
            is_kept = is_kept || (best.size == step * 16 && saves >= promised - 2000);
        }
        CHECK(is_kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(one_bad_size),
        UNIT_TEST(sizes_that_fit),
        UNIT_TEST(the_best_of_two),
        UNIT_TEST(few_blocks_are_not_worth_a_slab),
        UNIT_TEST(little_of_what_is_held_is_left_alone),
        UNIT_TEST(little_is_known),
        UNIT_TEST(what_failed_has_to_save_more),
        UNIT_TEST(what_has_few_blocks_to_a_slab_has_to_save_more),
        UNIT_TEST(opening_and_closing_are_apart),
        UNIT_TEST(cut_in_two),
        UNIT_TEST(the_worst_come_first),
        UNIT_TEST(no_size_is_better),
    };
    return cmocka_run_group_tests_name("fit_choice", tests, NULL, NULL);
}
