/* learn/patience.h: for how long a site's blocks are best kept, by what trials say. */
#include "unit.h"

#include "learn/patience.h"

/* A MiB held for two seconds costs as much as its page faults do. */
enum { AGE_MS = 1000, PRICE_NS = TRIAL_FAULTS_NS / 2 };

static struct trials waited(uint64_t ms, uint32_t count)
{
    struct trials trials = {0};
    trials.waits[site_time(ms)] = count;
    return trials;
}

static unsigned choose(const struct trials *trials, unsigned now)
{
    return patience_choose(trials, now, AGE_MS, PRICE_NS);
}

static void times_are_doublings(void)
{
    CHECK(site_time(0) == 0 && site_time(1) == 1 && site_time(2) == 2 && site_time(3) == 2 && site_time(4) == 3);
    CHECK(site_time(UINT64_MAX) == SITE_TIMES - 1);
    for (unsigned time = 0; time < SITE_TIMES; time++)
        CHECK(site_time(site_time_least(time)) == time);
}

static void blocks_that_come_back_soon_are_kept_as_others(void)
{
    struct trials trials = waited(10, 20);
    CHECK(choose(&trials, 0) == 0);
    CHECK(choose(&trials, PATIENCE_NONE) == 0);
}

static void blocks_that_come_back_a_little_later_are_kept_longer(void)
{
    struct trials trials = waited(1100, 20); /* between 1024 and 2048 ms */
    CHECK(choose(&trials, 0) == 1);
    trials.waits[site_time(10)] = 20;
    CHECK(choose(&trials, 0) == 1);
}

static void blocks_that_nobody_wants_are_not_kept(void)
{
    struct trials trials = {.unwanted = 20};
    CHECK(choose(&trials, 0) == PATIENCE_NONE);
    trials.waits[site_time(10)] = 2;
    CHECK(choose(&trials, 0) == PATIENCE_NONE);
    trials.waits[site_time(10)] = 20;
    CHECK(choose(&trials, 0) == 0);
}

/* To hold them that long costs more than their faults. */
static void blocks_that_come_back_late_are_not_kept(void)
{
    struct trials trials = waited(5000, 20);
    CHECK(choose(&trials, 0) == PATIENCE_NONE);
    CHECK(patience_choose(&trials, 0, AGE_MS, PRICE_NS / 10) == PATIENCE_MOST); /* unless memory is cheap */
}

static void few_trials_change_nothing(void)
{
    struct trials trials = {.unwanted = 7};
    CHECK(choose(&trials, 0) == 0);
    trials.unwanted = 8;
    CHECK(choose(&trials, 0) == PATIENCE_NONE);
}

/* Where two are nearly level, whichever is there stays. */
static void small_differences_change_nothing(void)
{
    struct trials trials = {.unwanted = 10};
    trials.waits[site_time(500)] = 12;
    CHECK(choose(&trials, 0) == 0);
    CHECK(choose(&trials, PATIENCE_NONE) == PATIENCE_NONE || patience_saves(&trials, 0, AGE_MS, PRICE_NS) > 0);
    uint32_t flips = 0;
    unsigned now = 0;
    for (uint32_t noise = 0; noise < 20; noise++) {
        trials.waits[site_time(500)] = 9 + noise % 2;
        unsigned next = choose(&trials, now);
        flips += next != now;
        now = next;
    }
    CHECK(flips <= 1);
}

static void what_is_saved_is_faults_less_memory(void)
{
    struct trials trials = waited(1024, 1);
    CHECK(patience_saves(&trials, PATIENCE_NONE, AGE_MS, PRICE_NS) == 0);
    CHECK(patience_saves(&trials, 0, AGE_MS, PRICE_NS) == -PRICE_NS);
    CHECK(patience_saves(&trials, 1, AGE_MS, PRICE_NS) == TRIAL_FAULTS_NS - (int64_t)1536 * PRICE_NS / 1000);
    trials = (struct trials){.unwanted = 3};
    CHECK(patience_saves(&trials, 2, AGE_MS, PRICE_NS) == -3 * 4 * (int64_t)PRICE_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(times_are_doublings),
        UNIT_TEST(blocks_that_come_back_soon_are_kept_as_others),
        UNIT_TEST(blocks_that_come_back_a_little_later_are_kept_longer),
        UNIT_TEST(blocks_that_nobody_wants_are_not_kept),
        UNIT_TEST(blocks_that_come_back_late_are_not_kept),
        UNIT_TEST(few_trials_change_nothing),
        UNIT_TEST(small_differences_change_nothing),
        UNIT_TEST(what_is_saved_is_faults_less_memory),
    };
    return cmocka_run_group_tests_name("patience", tests, NULL, NULL);
}
