/* base/clock.h: never back, and about as fast as time goes. */
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
    CHECK(last - start < 60000);
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
    const struct CMUnitTest tests[] = {UNIT_TEST(goes_on), UNIT_TEST(can_be_set_by_tests)};
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
