/* span/limit.h: what counts, and what the hard limit refuses. */
#include "unit.h"

#include <string.h>

#include "arena/meta.h"
#include "base/bits.h"
#include "child.h"
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
    limit_set(SIZE_MAX, grains_as_limit(4) + 5 * MIB);
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
    limit_set(SIZE_MAX, grains_as_limit(10));
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
    limit_set(SIZE_MAX, grains_as_limit(grains));
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
    limit_set(SIZE_MAX, grains_as_limit(8));
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
    limit_set(SIZE_MAX, grains_as_limit(10));
    CHECK(!limit_is_short_of(10 * grain_bytes));
    grains_take_any(1);
    CHECK(limit_is_short_of(10 * grain_bytes));
    CHECK(limit_is_short_of(8 * grain_bytes + 1)); /* whole units and pages are charged */
    CHECK(!limit_is_short_of(8 * grain_bytes));
    CHECK(!limit_is_short_of(grains_as_limit(10) + 1)); /* nothing that is given back would help */
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

static size_t before_the_move;
static unsigned number_of_move;

static void counts_in_child(uintptr_t unused)
{
    (void)unused;
    limit_after_fork();
    CHECK(limit_held() == before_the_move);
}

static void goes_on_in_child(uintptr_t unused)
{
    (void)unused;
    limit_after_fork();
    limit_end_move(number_of_move, grain_bytes);
    CHECK(limit_held() == before_the_move);
}

static void fork_elsewhere(void *unused)
{
    (void)unused;
    CHECK(child_run(counts_in_child, 0).status == 0);
}

/* In the child of a fork what other threads were moving counts where it was; what the thread itself was, when it has moved it. */
static void moves_end_with_their_threads(void)
{
    enum { AT_ONCE = 20 };
    struct worker worker;
    unsigned numbers[AT_ONCE];
    grains_init();
    grains_take_any(AT_ONCE);
    before_the_move = limit_held();
    worker_start(&worker);
    number_of_move = limit_begin_move(grain_bytes);
    CHECK(limit_held() == before_the_move - grain_bytes);
    CHECK(child_run(goes_on_in_child, 0).status == 0);
    worker_run(&worker, fork_elsewhere, NULL);
    limit_end_move(number_of_move, grain_bytes);
    for (int i = 0; i < AT_ONCE; i++)
        numbers[i] = limit_begin_move(grain_bytes);
    CHECK(limit_held() == before_the_move - AT_ONCE * grain_bytes);
    worker_run(&worker, fork_elsewhere, NULL);
    for (int i = 0; i < AT_ONCE; i++)
        limit_end_move(numbers[i], grain_bytes);
    CHECK(limit_held() == before_the_move);
    worker_stop(&worker);
}

static void take_one_mib(void *taken)
{
    bool zero;
    *(bool *)taken = large_alloc(1 * MIB, 1, &zero) != NULL;
}

/* What a move needs for a moment nobody else gets. */
static void nobody_else_gets_what_is_borrowed(void)
{
    struct worker worker;
    bool taken = true;
    large_init();
    char *block = large_take(8 * MIB);
    worker_start(&worker);
    limit_set(SIZE_MAX, limit_held());
    CHECK(limit_borrow(8 * MIB));
    worker_run(&worker, take_one_mib, &taken);
    CHECK(!taken);
    take_one_mib(&taken);
    CHECK(taken);
    limit_repay();
    take_one_mib(&taken);
    CHECK(!taken);
    large_give(block);
    worker_stop(&worker);
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
        UNIT_TEST(moves_end_with_their_threads),
        UNIT_TEST(nobody_else_gets_what_is_borrowed),
        UNIT_TEST(refused_moves_are_not_counted),
    };
    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
