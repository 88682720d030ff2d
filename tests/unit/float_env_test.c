/* base/float_env.h: of what is computed behind the door the program's floating-point environment shows nothing, whatever that is. */
#include "unit.h"

#include <fenv.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/events.h"
#include "learn/learn.h"
#include "profiles.h"

int feenableexcept(int exceptions) __attribute__((weak)); /* not every libc has it */

/* SIGFPE of any result that is not exact, where the processor can do that. */
static void be_strict(void)
{
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0 && fesetround(FE_UPWARD) == 0);
    if (feenableexcept != NULL)
        (void)feenableexcept(FE_ALL_EXCEPT);
}

static void check_untouched(void)
{
    int flags = fetestexcept(FE_ALL_EXCEPT);
    int rounding = fegetround();
    CHECK(fesetenv(FE_DFL_ENV) == 0);
    CHECK(flags == 0 && rounding == FE_UPWARD);
}

static void samples_are_not_seen(void)
{
    enum { RATE = 4096, TIMES = 20000, SIZES = 3000 };
    profile_begin(RATE);
    be_strict();
    for (size_t i = 0; i < TIMES; i++)
        hak_free(hak_malloc(1 + i % SIZES));
    check_untouched();
    CHECK(profile_totals.allocated.count > TIMES / 10);
}

/* Which of them is still a sample is drawn. */
static void samples_that_shrink_are_not_seen(void)
{
    enum { RATE = 1 << 20, TIMES = 1000, BEFORE = 1 << 20, AFTER = 1 << 18 };
    int left = 0;
    profile_begin(RATE);
    be_strict();
    for (int i = 0; i < TIMES; i++) {
        void *block = hak_malloc(BEFORE);
        bool was_sampled = is_sampled(block);
        block = hak_realloc(block, AFTER);
        left += was_sampled && !is_sampled(block);
        hak_free(block);
    }
    check_untouched();
    CHECK(left > 0);
}

static uint64_t now_ms = 100000;

static void tick(struct heap *heap)
{
    fake_clock_set(now_ms += 5);
    learn_beat(heap);
}

static void learning_is_not_seen(void)
{
    enum { BLOCKS = 50, ROUNDS = 400, EPOCHS = 50 };
    static void *blocks[BLOCKS];
    struct learn_summary summary;
    policy.heartbeat_bytes = 4 << 20;
    policy.guard_bytes = 0;
    policy.purger = false; /* another thread would have an environment of its own */
    policy.learn = LEARN_ON;
    policy.learn_parts = LEARN_ALL;
    fake_clock_set(now_ms);
    learn_start();
    heap_events.heartbeat = tick;
    be_strict();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = hak_malloc(((size_t)1 << 20) + i * 1000);
        for (size_t i = 0; i < BLOCKS; i++)
            hak_free(blocks[i]);
    }
    check_untouched();
    learn_summary(&summary);
    CHECK(summary.epochs >= EPOCHS && summary.matches > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(samples_are_not_seen),
        UNIT_TEST(samples_that_shrink_are_not_seen),
        UNIT_TEST(learning_is_not_seen),
    };
    return cmocka_run_group_tests_name("float_env", tests, NULL, NULL);
}
