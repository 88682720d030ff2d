/* span/span.h: which pages are given back, when, and what is read there afterwards. */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "arena/arena.h"
#include "child.h"
#include "config/policy.h"
#include "fake_os.h"
#include "grains.h"
#include "random.h"
#include "scale.h"
#include "span/span.h"

static void purged_units_read_as_zero(void)
{
    grains_init();
    char *run = grains_take_any(40);
    grains_write_words(run, 40, 1);
    grains_give(run, 40, true);
    bool zero = true;
    char *again = grains_take(40, 1, &zero);
    CHECK(again == run && !zero);
    grains_check_words(run, 40, 1);
    grains_give(run, 40, true);
    CHECK(span_purge_all() == 40 * grain_bytes);
    CHECK(span_purge_all() == 0);
    CHECK(grains_take(40, 1, &zero) == run && zero);
    grains_check_words(run, 40, 0);
}

static void units_in_use_are_not_purged(void)
{
    grains_init();
    char *run = grains_take_any(32);
    grains_write_words(run, 32, 9);
    grains_give(run, 1, true);
    grains_give(run + 16 * grain_bytes, 4, true);
    CHECK(span_purge_all() == 5 * grain_bytes);
    grains_check_words(run, 1, 0);
    grains_check_words(run + 1 * grain_bytes, 15, 9);
    grains_check_words(run + 16 * grain_bytes, 4, 0);
    grains_check_words(run + 20 * grain_bytes, 12, 9);
}

static void purges_by_age(void)
{
    enum { DELAY_MS = 700 };
    grains_init();
    policy.purge_ms = DELAY_MS;
    char *old = grains_take_any(superslab_grains);
    char *young = grains_take_any(superslab_grains);
    fake_clock_set(1000);
    grains_give(old, 10, true);
    fake_clock_set(2000);
    grains_give(young, superslab_grains, true);
    CHECK(span_dirty_bytes() == SUPERSLAB_SIZE + 10 * grain_bytes);
    CHECK(span_purge_old(1000 + DELAY_MS, SIZE_MAX) == 0);
    CHECK(span_purge_old(1001 + DELAY_MS, SIZE_MAX) == 10 * grain_bytes);
    CHECK(span_dirty_bytes() == SUPERSLAB_SIZE);
    CHECK(span_purge_old(2000 + DELAY_MS, SIZE_MAX) == 0);
    fake_clock_set(3000);
    grains_give(old + 10 * grain_bytes, 6, true);
    CHECK(span_purge_old(3000 + DELAY_MS, SIZE_MAX) == SUPERSLAB_SIZE);
    CHECK(span_purge_old(3001 + DELAY_MS, SIZE_MAX) == 6 * grain_bytes);
    CHECK(span_dirty_bytes() == 0);
}

/* Superslab by superslab, and the rest the next time. */
static void no_more_than_asked_for(void)
{
    enum { RUNS = 5 };
    char *runs[RUNS];
    grains_init();
    policy.purge_ms = 1000;
    for (int i = 0; i < RUNS; i++)
        runs[i] = grains_take_any(superslab_grains);
    fake_clock_set(1000);
    for (int i = 0; i < RUNS; i++)
        grains_give(runs[i], superslab_grains, true);
    CHECK(span_purge_old(5000, SUPERSLAB_SIZE + 1) == 2 * SUPERSLAB_SIZE);
    CHECK(span_purge_old(5000, 1) == SUPERSLAB_SIZE);
    CHECK(span_dirty_bytes() == 2 * SUPERSLAB_SIZE);
    CHECK(span_purge_old(5000, SIZE_MAX) == 2 * SUPERSLAB_SIZE);
}

/* Takes and frees a superslab once in `period_ms`, for `rounds` periods; returns how often it was given back. */
static int come_and_go(uint64_t start_ms, uint64_t period_ms, int rounds)
{
    int given_back = 0;
    for (uint64_t now = start_ms; now < start_ms + period_ms * (uint64_t)rounds; now += 100) {
        fake_clock_set(now);
        if ((now - start_ms) % period_ms == 0)
            grains_give(grains_take_any(superslab_grains), superslab_grains, true);
        given_back += span_purge_old(now, SIZE_MAX) > 0;
    }
    return given_back;
}

/* Two delays between: it would be given back each time, in vain. */
static void what_is_wanted_again_is_kept(void)
{
    grains_init();
    policy.purge_ms = 1000;
    CHECK(come_and_go(10000, 2000, 20) <= 4);
    /* But not for ever. */
    for (uint64_t now = 60000; now < 69000; now += 100)
        span_purge_old(now, SIZE_MAX);
    CHECK(span_dirty_bytes() == 0);
}

/* Whoever purges all at once, between phases, did not ask how old it was: taking it again is no sign of haste. */
static void what_is_purged_at_any_age_is_not_regretted(void)
{
    enum { DELAY_MS = 1000 };
    uint64_t now = 10000;
    grains_init();
    policy.purge_ms = DELAY_MS;
    for (int phase = 0; phase < 20; phase++, now += DELAY_MS) {
        fake_clock_set(now);
        grains_give(grains_take_any(superslab_grains), superslab_grains, true);
        CHECK(span_purge_all() == SUPERSLAB_SIZE);
        CHECK(span_purge_old(now, SIZE_MAX) == 0);
    }
    fake_clock_set(now);
    grains_give(grains_take_any(superslab_grains), superslab_grains, true);
    CHECK(span_purge_old(now + DELAY_MS + 1, SIZE_MAX) == SUPERSLAB_SIZE);
}

/* With huge pages everywhere, memory that was never written may lie in one that was. */
static void huge_pages_are_given_back_whole(void)
{
    policy.huge = HUGE_ON;
    grains_init();
    char *run = grains_take_any(8);
    grains_give(run, 8, true);
    CHECK(span_purge_all() == SUPERSLAB_SIZE);
}

static void refused_purge_keeps_content(void)
{
    grains_init();
    bool zero = true;
    char *run = grains_take_any(8);
    grains_write_words(run, 8, 3);
    grains_give(run, 8, true);
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(span_purge_all() == 0);
    fake_os_obey();
    CHECK(grains_take(8, 1, &zero) == run && !zero);
    grains_check_words(run, 8, 3);
    grains_give(run, 8, true);
    CHECK(span_purge_all() == 8 * grain_bytes);
}

static void *purge_and_take(void *seed_value)
{
    uint64_t random = (uintptr_t)seed_value;
    char *held[4] = {NULL};
    for (size_t i = 0; i < scaled_work(400000); i++) {
        bool zero;
        char **one = &held[random_below(&random, 4)];
        if (*one != NULL) {
            grains_give(*one, 4, true);
            *one = NULL;
        } else {
            *one = grains_take(4, 1, &zero);
            CHECK(*one != NULL);
        }
        if (random_below(&random, 2) == 0)
            span_purge_all();
    }
    for (int i = 0; i < 4; i++)
        if (held[i] != NULL)
            grains_give(held[i], 4, true);
    return NULL;
}

/* Of the same superslabs, whose dirty grains are taken again meanwhile. What is being purged is on one list, which a
 * fork's child goes through; it must be empty at the end. */
static void purges_may_overlap(void)
{
    enum { PURGERS = 6 };
    pthread_t threads[PURGERS];
    grains_init();
    for (uintptr_t i = 0; i < PURGERS; i++)
        CHECK(pthread_create(&threads[i], NULL, purge_and_take, (void *)(i + 1)) == 0);
    for (int i = 0; i < PURGERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    alarm(20); /* a damaged list has no end */
    span_after_fork();
    alarm(0);
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == 0);
}

static char *taken_in_child;

/* A signal handler that forks, seen from the child. */
static void become_a_child(void)
{
    bool zero;
    span_lock_all();
    span_after_fork();
    span_unlock_all();
    taken_in_child = grains_take(8, 1, &zero);
    grains_write_words(taken_in_child, 8, 5);
}

static char *being_purged;

static void is_free_in_child(uintptr_t unused)
{
    (void)unused;
    span_lock_all();
    span_after_fork();
    span_unlock_all();
    fake_os_before_purge(NULL);
    CHECK(span_purge_all() == 8 * grain_bytes); /* the child's own finds it */
    CHECK(grains_take_any(8) == being_purged);
}

static void *fork_elsewhere(void *unused)
{
    CHECK(child_run(is_free_in_child, 0).status == 0);
    return unused;
}

static void fork_in_another_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_elsewhere, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void purges_of_others_end_in_child(void)
{
    grains_init();
    being_purged = grains_take_any(8);
    grains_give(being_purged, 8, true);
    fake_os_before_purge(fork_in_another_thread);
    CHECK(span_purge_all() == 8 * grain_bytes);
    fake_os_before_purge(NULL);
}

static void own_purge_goes_on_in_child(void)
{
    grains_init();
    char *run = grains_take_any(8);
    grains_give(run, 8, true);
    fake_os_before_purge(become_a_child);
    CHECK(span_purge_all() == 8 * grain_bytes);
    fake_os_before_purge(NULL);
    CHECK(taken_in_child != NULL && taken_in_child != run);
    grains_check_words(taken_in_child, 8, 5);
    span_lock_all();
    span_after_fork();
    span_unlock_all();
    CHECK(grains_take_any(8) == run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(purged_units_read_as_zero),
        UNIT_TEST(units_in_use_are_not_purged),
        UNIT_TEST(purges_by_age),
        UNIT_TEST(no_more_than_asked_for),
        UNIT_TEST(what_is_wanted_again_is_kept),
        UNIT_TEST(what_is_purged_at_any_age_is_not_regretted),
        UNIT_TEST(huge_pages_are_given_back_whole),
        UNIT_TEST(refused_purge_keeps_content),
        UNIT_TEST(purges_may_overlap),
        UNIT_TEST(purges_of_others_end_in_child),
        UNIT_TEST(own_purge_goes_on_in_child),
    };
    return cmocka_run_group_tests_name("span_purge", tests, NULL, NULL);
}
