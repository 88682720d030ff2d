/* base/clock.h: never back, and the time that the kernel says. */
#include "unit.h"

#include <time.h>

#include "base/clock.h"
#include "fake_os.h"

static void goes_on(void)
{
    uint64_t start = clock_now_ms();
    uint64_t last = start;
    for (int i = 0; i < 20; i++) {
        struct timespec pause = {.tv_nsec = 5000000};
        nanosleep(&pause, NULL);
        uint64_t now = clock_now_ms();
        CHECK(now >= last);
        last = now;
    }
    CHECK(last - start >= 80);
}

static uint64_t kernel_ns(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What the function says lies between what the kernel says before and after; the time of day may be set meanwhile. */
static bool is_between(clockid_t clock, uint64_t (*read)(void), uint64_t unit_ns)
{
    bool between = false;
    for (int i = 0; i < 3 && !between; i++) {
        uint64_t before = kernel_ns(clock) / unit_ns;
        uint64_t now = read();
        between = now >= before && now <= kernel_ns(clock) / unit_ns;
    }
    return between;
}

static void is_the_kernels(void)
{
    CHECK(is_between(CLOCK_MONOTONIC_COARSE, clock_now_ms, 1000000));
    CHECK(is_between(CLOCK_MONOTONIC, clock_now_ns, 1));
    CHECK(is_between(CLOCK_REALTIME, clock_unix_ms, 1000000));
}

static void can_be_set_by_tests(void)
{
    fake_clock_set(123);
    CHECK(clock_now_ms() == 123);
    fake_clock_set(0);
    CHECK(clock_now_ms() != 123);
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(goes_on), UNIT_TEST(is_the_kernels), UNIT_TEST(can_be_set_by_tests)};
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
