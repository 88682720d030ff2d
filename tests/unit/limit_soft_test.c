/* span/limit.h: when the soft limit presses, what it is, and who is told. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "base/bits.h"
#include "config/policy.h"
#include "fake_os.h"
#include "grains.h"
#include "span/limit.h"
#include "worker.h"

/* What the heap layer does; true: it gave back. */
static bool relieve(void)
{
    return limit_presses() && limit_begin_relief(0);
}

static void presses_when_it_is_passed(void)
{
    grains_init();
    limit_set(grains_as_limit(10), SIZE_MAX);
    char *run = grains_take_any(10);
    CHECK(!limit_presses());
    bool zero = true;
    CHECK(grains_extend(run + 10 * grain_bytes, 1, &zero));
    CHECK(limit_presses());
    CHECK(relieve());
    CHECK(!limit_presses());
    CHECK(!limit_begin_relief(0)); /* another thread was here before */
}

static void does_not_press_below(void)
{
    grains_init();
    limit_set(grains_as_limit(100), SIZE_MAX);
    for (int i = 0; i < 1000; i++)
        grains_give(grains_take_any(90), 90, i % 2 == 0);
    CHECK(!limit_presses());
}

/* What was free when the pressure was seen is no reason to give back. */
static void pressure_may_pass(void)
{
    grains_init();
    limit_set(grains_as_limit(10), SIZE_MAX);
    grains_give(grains_take_any(11), 11, false);
    CHECK(limit_presses());
    CHECK(!relieve());
    CHECK(!limit_presses());
    grains_take_any(11);
    CHECK(limit_presses() && relieve());
}

/* Takes grains until memory is to be given back; the bytes that took. */
static size_t charge_until_relief(void)
{
    for (size_t bytes = grain_bytes;; bytes += grain_bytes) {
        grains_take_any(1);
        if (limit_presses()) {
            CHECK(relieve());
            return bytes;
        }
    }
}

/* A program that stays above its limit. */
static void relief_keeps_its_distance_above_the_limit(void)
{
    grains_init();
    size_t soft = 128 * MIB;
    limit_set(soft, SIZE_MAX);
    CHECK(charge_until_relief() > soft - 2 * MIB);
    for (int i = 0; i < 10; i++)
        CHECK(charge_until_relief() == soft / 64);
    limit_set(soft, SIZE_MAX);
    CHECK(charge_until_relief() == grain_bytes);
    CHECK(charge_until_relief() == soft / 64);
}

/* One that is below it and above again and again, by 1 MiB: 1/128. */
static void relief_keeps_its_distance_at_the_limit(void)
{
    enum { CYCLES = 64 };
    grains_init();
    size_t grains = MIB / grain_bytes;
    limit_set(128 * MIB, SIZE_MAX);
    grains_take_any((127 * MIB + MIB / 2 - meta_committed()) / grain_bytes);
    size_t presses = 0;
    size_t reliefs = 0;
    for (int i = 0; i < CYCLES; i++) {
        char *run = grains_take_any(grains);
        presses += limit_presses();
        reliefs += relieve();
        CHECK(!limit_presses());
        grains_give(run, grains, false);
    }
    CHECK(reliefs == CYCLES / 2 && presses == reliefs);
}

static void small_limits_have_a_least_step(void)
{
    grains_init();
    limit_set(1, SIZE_MAX);
    CHECK(charge_until_relief() == grain_bytes);
    for (int i = 0; i < 10; i++)
        CHECK(charge_until_relief() == MIB);
}

static void control_group_is_asked_late_and_once(void)
{
    grains_init();
    grains_take_any(30 * MIB / grain_bytes);
    CHECK(!limit_presses());
    grains_take_any(3 * MIB / grain_bytes);
    CHECK(limit_presses());
    CHECK(limit_begin_learning());
    CHECK(!limit_begin_learning()); /* another thread meanwhile */
    CHECK(!relieve());              /* it has nothing to do */
    limit_learn(SIZE_MAX);
    CHECK(!limit_begin_learning());
    grains_take_any(30 * MIB / grain_bytes);
    CHECK(!limit_presses());
    CHECK(policy.soft_limit == SIZE_MAX);
}

static void what_is_set_is_not_replaced(void)
{
    grains_init();
    grains_take_any(33 * MIB / grain_bytes);
    CHECK(limit_begin_learning());
    limit_set(100 * MIB, SIZE_MAX);
    limit_learn(40 * MIB);
    CHECK(policy.soft_limit == 100 * MIB);
}

static void group_limit_leaves_a_rest(void)
{
    static const size_t limits[][2] = {{0, 0}, {1, 1}, {7, 7}, {8, 7}, {800 * MIB, 700 * MIB}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        policy.soft_limit = 0;
        limit_learn(limits[i][0]);
        CHECK(policy.soft_limit == limits[i][1]);
    }
}

/* ---- The listener. */

static void hear(size_t held, size_t limit, void *data)
{
    (void)held;
    (void)limit;
    (void)data;
}

static bool tell(void)
{
    struct limit_notice notice;
    if (!limit_begin_notice(&notice, 0))
        return false;
    CHECK(notice.listener.callback == hear);
    CHECK(notice.held > notice.limit);
    CHECK(!limit_begin_notice(&notice, 0)); /* never within itself */
    limit_end_notice();
    return true;
}

static void tells_once_a_crossing(void)
{
    grains_init();
    fake_clock_set(1000);
    limit_set(grains_as_limit(10), SIZE_MAX);
    grains_take_any(10);
    CHECK(!tell());
    char *more = grains_take_any(1);
    CHECK(!tell()); /* nobody listens */
    limit_set_listener((struct limit_listener){hear, NULL});
    CHECK(tell());
    fake_clock_set(2000);
    CHECK(!tell());
    grains_take_any(1);
    CHECK(!tell());
    grains_give(more, 2, false);
    CHECK(!tell());
    grains_take_any(2);
    CHECK(tell() && !tell());
}

static void tells_not_too_often(void)
{
    grains_init();
    fake_clock_set(1000);
    limit_set(grains_as_limit(10), SIZE_MAX);
    limit_set_listener((struct limit_listener){hear, NULL});
    char *run = grains_take_any(11);
    CHECK(tell());
    for (uint64_t ms = 1001; ms < 1100; ms++) {
        fake_clock_set(ms);
        grains_give(run, 11, false);
        CHECK(grains_take_any(11) == run);
        CHECK(!tell());
    }
    fake_clock_set(1100);
    CHECK(tell());
}

static void new_limits_and_listeners_are_told(void)
{
    grains_init();
    fake_clock_set(1000);
    grains_take_any(20);
    limit_set_listener((struct limit_listener){hear, NULL});
    limit_set(grains_as_limit(10), SIZE_MAX);
    grains_take_any(1);
    CHECK(limit_presses() && relieve() && tell());
    fake_clock_set(2000);
    limit_set(grains_as_limit(15), SIZE_MAX);
    grains_take_any(1);
    CHECK(limit_presses() && relieve() && tell());
    fake_clock_set(3000);
    limit_set_listener((struct limit_listener){hear, NULL});
    grains_take_any(1);
    CHECK(limit_presses() && relieve() && tell());
    limit_set_listener((struct limit_listener){NULL, NULL});
    fake_clock_set(4000);
    CHECK(!tell());
}

static struct limit_notice elsewhere;

static void begin_notice(void *unused)
{
    (void)unused;
    CHECK(limit_begin_notice(&elsewhere, 0));
}

static bool told_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        limit_after_fork();
        limit_set_listener((struct limit_listener){hear, NULL}); /* as a new crossing */
        fake_clock_set(9000);
        struct limit_notice notice;
        _exit(limit_begin_notice(&notice, 0));
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

/* A thread that was in the callback is not in the child; the forking one, if it was, still is. */
static void callbacks_end_with_their_threads(void)
{
    struct worker worker;
    grains_init();
    fake_clock_set(1000);
    limit_set(1, SIZE_MAX);
    limit_set_listener((struct limit_listener){hear, NULL});
    grains_take_any(1);
    worker_start(&worker);
    worker_run(&worker, begin_notice, NULL);
    CHECK(told_in_child());
    limit_end_notice();
    fake_clock_set(2000);
    limit_set(2, SIZE_MAX);
    begin_notice(NULL);
    CHECK(!told_in_child());
    worker_stop(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(presses_when_it_is_passed),
        UNIT_TEST(does_not_press_below),
        UNIT_TEST(pressure_may_pass),
        UNIT_TEST(relief_keeps_its_distance_above_the_limit),
        UNIT_TEST(relief_keeps_its_distance_at_the_limit),
        UNIT_TEST(small_limits_have_a_least_step),
        UNIT_TEST(control_group_is_asked_late_and_once),
        UNIT_TEST(what_is_set_is_not_replaced),
        UNIT_TEST(group_limit_leaves_a_rest),
        UNIT_TEST(tells_once_a_crossing),
        UNIT_TEST(tells_not_too_often),
        UNIT_TEST(new_limits_and_listeners_are_told),
        UNIT_TEST(callbacks_end_with_their_threads),
    };
    return cmocka_run_group_tests_name("limit_soft", tests, NULL, NULL);
}
