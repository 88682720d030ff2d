/* span/limit.h: what counts, what is refused, and when the soft limit presses. */
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/bits.h"
#include "config/policy.h"
#include "fake_os.h"
#include "grains.h"
#include "larges.h"
#include "span/limit.h"
#include "span/span.h"
#include "worker.h"

/* Grains that count. */
static size_t held_grains(void)
{
    return (limit_held() - meta_committed()) / grain_bytes;
}

static size_t bytes_for(size_t grains)
{
    return grains * grain_bytes + meta_committed();
}

static void counts_runs_and_written_units(void)
{
    grains_init();
    CHECK(held_grains() == 0);
    char *run = grains_take_any(20);
    CHECK(held_grains() == 20);
    grains_give(run, 5, true);
    CHECK(held_grains() == 20);
    grains_give(run + 5 * grain_bytes, 5, false);
    CHECK(held_grains() == 15);
    CHECK(span_purge_all() == 5 * grain_bytes);
    CHECK(held_grains() == 10);
    char *long_run = grains_take_any(3 * superslab_grains + 4);
    CHECK(held_grains() == 3 * superslab_grains + 14);
    grains_give(long_run, 3 * superslab_grains + 4, true);
    CHECK(grains_take_any(2 * superslab_grains) != NULL);
    CHECK(held_grains() == 3 * superslab_grains + 14);
}

static void units_count_once_when_they_are_used_again(void)
{
    grains_init();
    char *run = grains_take_any(8);
    grains_give(run, 4, true);
    bool zero;
    CHECK(grains_take(4, 1, &zero) == run);
    CHECK(held_grains() == 8);
    grains_give(run, 2, true);
    grains_give(run + 2 * grain_bytes, 2, false);
    CHECK(held_grains() == 6);
    CHECK(grains_take(4, 1, &zero) == run);
    CHECK(held_grains() == 8);
    CHECK(grains_extend(run + 8 * grain_bytes, 3, &zero));
    CHECK(held_grains() == 11);
}

static void refused_purges_go_on_counting(void)
{
    grains_init();
    grains_give(grains_take_any(6), 6, true);
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(span_purge_all() == 0);
    CHECK(held_grains() == 6);
}

static void abandoned_units_do_not_count(void)
{
    grains_init();
    grains_mark_taken(grains_take_any(6), 6, true);
    grains_abandon(6);
    CHECK(held_grains() == 0);
}

static void metadata_counts(void)
{
    grains_init();
    size_t before = limit_held();
    CHECK(meta_alloc(8 * MIB) != NULL);
    CHECK(limit_held() >= before + 8 * MIB);
    limit_set(SIZE_MAX, bytes_for(4) + 5 * MIB);
    CHECK(grains_take_any(4) != NULL);
    CHECK(meta_alloc(8 * MIB) != NULL); /* is never refused */
    bool zero;
    CHECK(grains_take(1, 1, &zero) == NULL);
}

/* To the last grain, whatever the run's form. */
static void hard_limit_is_exact(void)
{
    grains_init();
    bool zero;
    limit_set(SIZE_MAX, bytes_for(10));
    CHECK(grains_take(11, 1, &zero) == NULL);
    char *run = grains_take_any(6);
    CHECK(grains_take(5, 1, &zero) == NULL);
    CHECK(!grains_extend(run + 6 * grain_bytes, 5, &zero));
    CHECK(grains_extend(run + 6 * grain_bytes, 4, &zero));
    CHECK(grains_take(1, 1, &zero) == NULL);
    CHECK(held_grains() == 10);
    grains_give(run, 3, true);
    CHECK(grains_take(3, 1, &zero) == run && !zero); /* they count anyway */
    grains_give(run, 3, false);
    CHECK(grains_take(3, 1, &zero) == run && zero);
    limit_set(SIZE_MAX, SIZE_MAX);
    CHECK(grains_take(1, 1, &zero) != NULL);
}

static void hard_limit_of_long_runs(void)
{
    grains_init();
    bool zero;
    size_t grains = 2 * superslab_grains + 3;
    limit_set(SIZE_MAX, bytes_for(grains));
    CHECK(grains_take(grains + 1, 1, &zero) == NULL);
    char *run = grains_take_any(grains);
    CHECK(held_grains() == grains);
    grains_give(run, grains, true);
    CHECK(grains_take_any(grains) == run);
    grains_give(run, grains, true);
    /* Written units elsewhere stand in the way, until they are purged. */
    CHECK(grains_take(grains, 2 * superslab_grains, &zero) == NULL || held_grains() == grains);
    span_purge_all();
    CHECK(held_grains() <= grains);
}

/* A request that can never be granted costs no address space. */
static void refused_runs_leave_the_range_alone(void)
{
    grains_init();
    grains_take_any(1);
    limit_set(SIZE_MAX, bytes_for(8));
    struct span_stats before;
    struct span_stats after;
    bool zero;
    span_stats(&before);
    CHECK(grains_take(1000 * superslab_grains, 1, &zero) == NULL);
    span_stats(&after);
    CHECK(after.reserved_bytes == before.reserved_bytes);
    CHECK(after.committed_bytes == before.committed_bytes);
}

static void short_of(void)
{
    grains_init();
    CHECK(!limit_is_short_of(SIZE_MAX));
    limit_set(SIZE_MAX, bytes_for(10));
    CHECK(!limit_is_short_of(10 * grain_bytes));
    grains_take_any(1);
    CHECK(limit_is_short_of(10 * grain_bytes));
    CHECK(!limit_is_short_of(9 * grain_bytes));
    CHECK(!limit_is_short_of(bytes_for(10) + 1)); /* nothing that is given back would help */
}

/* A block that grows by remapping never has its pages twice: the limit may lie below the sum of both runs. */
static void moved_pages_count_once(void)
{
    large_init();
    char *block = large_take(8 * MIB);
    char *in_its_way = large_take(8 * MIB);
    struct large *record = large_find(block);
    memset(block, 7, 8 * MIB);
    limit_set(SIZE_MAX, limit_held() + 3 * MIB);
    char *moved = large_resize(record, 10 * MIB);
    CHECK(moved != NULL && moved != block);
    CHECK(limit_held() - meta_committed() == 18 * MIB);
    CHECK(large_resize(record, 12 * MIB) == NULL);
    CHECK(large_find(moved) == record && record->bytes == 10 * MIB);
    CHECK(limit_held() - meta_committed() == 18 * MIB);
    for (size_t i = 0; i < 8 * MIB; i += 4096)
        CHECK(moved[i] == 7);
    large_give(in_its_way);
}

static void refused_moves_are_not_counted(void)
{
    large_init();
    char *block = large_take(8 * MIB);
    large_take(8 * MIB);
    struct large *record = large_find(block);
    for (int i = 0; i < 4; i++) {
        fake_os_refuse(FAKE_MOVE | FAKE_REFILL_HOLE, 1 + (size_t)i % 2, 1 + (size_t)i / 2);
        char *moved = large_resize(record, record->bytes + 2 * MIB);
        fake_os_obey();
        span_purge_all();
        struct span_stats stats;
        span_stats(&stats);
        CHECK(moved != NULL || large_find(record->base) == record);
        CHECK(limit_held() - meta_committed() <= stats.committed_bytes);
        CHECK(limit_held() - meta_committed() >= record->units * UNIT_SIZE + 8 * MIB);
        CHECK(limit_held() - meta_committed() <= stats.used_bytes);
    }
}

/* ---- The soft limit. */

/* What the heap layer does; true: it gave back. */
static bool relieve(void)
{
    return limit_presses() && limit_begin_relief();
}

static void presses_when_it_is_passed(void)
{
    grains_init();
    limit_set(bytes_for(10), SIZE_MAX);
    char *run = grains_take_any(10);
    CHECK(!limit_presses());
    bool zero;
    CHECK(grains_extend(run + 10 * grain_bytes, 1, &zero));
    CHECK(limit_presses());
    CHECK(relieve());
    CHECK(!limit_presses());
    CHECK(!limit_begin_relief()); /* another thread was here before */
}

static void does_not_press_below(void)
{
    grains_init();
    limit_set(bytes_for(100), SIZE_MAX);
    for (int i = 0; i < 1000; i++)
        grains_give(grains_take_any(90), 90, i % 2 == 0);
    CHECK(!limit_presses());
}

/* What was free when the pressure was seen is no reason to give back. */
static void pressure_may_pass(void)
{
    grains_init();
    limit_set(bytes_for(10), SIZE_MAX);
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
    static const size_t limits[][2] = {{0, 1}, {1, 1}, {7, 7}, {8, 7}, {800 * MIB, 700 * MIB}, {SIZE_MAX, SIZE_MAX}};
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
    if (!limit_begin_notice(&notice))
        return false;
    CHECK(notice.listener.callback == hear);
    CHECK(notice.held > notice.limit);
    CHECK(!limit_begin_notice(&notice)); /* never within itself */
    limit_end_notice();
    return true;
}

static void tells_once_a_crossing(void)
{
    grains_init();
    fake_clock_set(1000);
    limit_set(bytes_for(10), SIZE_MAX);
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
    limit_set(bytes_for(10), SIZE_MAX);
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
    limit_set(bytes_for(10), SIZE_MAX);
    grains_take_any(1);
    CHECK(limit_presses() && relieve() && tell());
    fake_clock_set(2000);
    limit_set(bytes_for(15), SIZE_MAX);
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
    CHECK(limit_begin_notice(&elsewhere));
}

static bool told_in_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        limit_after_fork();
        limit_set_listener((struct limit_listener){hear, NULL}); /* as a new crossing */
        fake_clock_set(9000);
        struct limit_notice notice;
        _exit(limit_begin_notice(&notice));
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
        UNIT_TEST(counts_runs_and_written_units),
        UNIT_TEST(units_count_once_when_they_are_used_again),
        UNIT_TEST(refused_purges_go_on_counting),
        UNIT_TEST(abandoned_units_do_not_count),
        UNIT_TEST(metadata_counts),
        UNIT_TEST(hard_limit_is_exact),
        UNIT_TEST(hard_limit_of_long_runs),
        UNIT_TEST(refused_runs_leave_the_range_alone),
        UNIT_TEST(short_of),
        UNIT_TEST(moved_pages_count_once),
        UNIT_TEST(refused_moves_are_not_counted),
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
    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
