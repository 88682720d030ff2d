/* span/span.h: which pages are given back, when, and what is read there afterwards. */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "arena/arena.h"
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
    grains_init();
    char *old = grains_take_any(superslab_grains);
    char *young = grains_take_any(superslab_grains);
    fake_clock_set(1000);
    grains_give(old, 20, true);
    fake_clock_set(2000);
    grains_give(young, superslab_grains, true);
    CHECK(span_purge_before(1000) == 0);
    CHECK(span_purge_before(1001) == 20 * grain_bytes);
    CHECK(span_purge_before(2000) == 0);
    fake_clock_set(3000);
    grains_give(old + 20 * grain_bytes, 12, true);
    CHECK(span_purge_before(3000) == SUPERSLAB_SIZE);
    CHECK(span_purge_before(3001) == 12 * grain_bytes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(purged_units_read_as_zero),
        UNIT_TEST(units_in_use_are_not_purged),
        UNIT_TEST(purges_by_age),
        UNIT_TEST(refused_purge_keeps_content),
        UNIT_TEST(purges_may_overlap),
    };
    return cmocka_run_group_tests_name("span_purge", tests, NULL, NULL);
}
