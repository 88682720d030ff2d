/* span/span.h: a model of which units are taken and what they hold, placement, purging, refusals. */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "fake_os.h"
#include "random.h"
#include "scale.h"
#include "span/span.h"

enum { RUNS = 64, STEPS = 20000, UNITS_MOST = 1 << 16 };

struct run {
    char *at;
    size_t units;
    uint64_t mark;
    bool written;
};

static struct run runs[RUNS];
static bool taken[UNITS_MOST]; /* by index of unit */
static size_t units_taken;
static uint64_t seed = 6;

/* Where runs are written to and looked at: both ends of each unit and a word within. */
static const size_t places[] = {0, 12296, UNIT_SIZE - 8};

#define PLACES (sizeof places / sizeof places[0])

static void init(void)
{
    size_class_init();
    CHECK(arena_init());
}

static void mark_taken(const char *at, size_t units, bool now)
{
    for (size_t unit = arena_unit(at); unit < arena_unit(at) + units; unit++) {
        CHECK(unit < UNITS_MOST);
        CHECK(taken[unit] != now);
        taken[unit] = now;
    }
    units_taken += now ? units : 0 - units;
}

static void check_words(const char *at, size_t units, uint64_t wanted)
{
    for (size_t unit = 0; unit < units; unit++) {
        for (size_t i = 0; i < PLACES; i++) {
            uint64_t found;
            memcpy(&found, at + unit * UNIT_SIZE + places[i], sizeof found);
            CHECK(found == wanted);
        }
    }
}

static void write_words(char *at, size_t units, uint64_t mark)
{
    for (size_t unit = 0; unit < units; unit++)
        for (size_t i = 0; i < PLACES; i++)
            memcpy(at + unit * UNIT_SIZE + places[i], &mark, sizeof mark);
}

static void check_stats(void)
{
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == units_taken << UNIT_SHIFT);
    CHECK(stats.committed_bytes >= stats.used_bytes + stats.dirty_bytes);
    CHECK(stats.reserved_bytes >= stats.committed_bytes);
}

static void take(struct run *run)
{
    size_t align = (size_t)1 << (random_below(&seed, 4) == 0 ? random_below(&seed, 7) : 0);
    bool zero = false;
    run->units = 1 + random_below(&seed, random_below(&seed, 4) == 0 ? 100 : 12);
    run->at = span_take(run->units, align, &zero);
    CHECK(run->at != NULL);
    CHECK((uintptr_t)run->at % (align * UNIT_SIZE) == 0);
    CHECK(arena_unit(run->at) % SUPERSLAB_UNITS + run->units <= SUPERSLAB_UNITS ||
          (run->units > SUPERSLAB_UNITS && arena_unit(run->at) % SUPERSLAB_UNITS == 0));
    mark_taken(run->at, run->units, true);
    if (zero)
        check_words(run->at, run->units, 0);
    run->written = random_below(&seed, 4) != 0;
    run->mark = random_next(&seed) | 1;
    if (run->written)
        write_words(run->at, run->units, run->mark);
}

static void give(struct run *run)
{
    if (run->written)
        check_words(run->at, run->units, run->mark);
    size_t first = random_below(&seed, 3) == 0 ? random_below(&seed, run->units) : 0;
    mark_taken(run->at, run->units, false);
    /* Not written by this run does not mean clean: it may hold what an earlier one wrote. */
    if (first > 0)
        span_give(run->at, first, true);
    span_give(run->at + first * UNIT_SIZE, run->units - first, true);
    run->at = NULL;
}

static void extend(struct run *run)
{
    size_t more = 1 + random_below(&seed, 6);
    char *end = run->at + run->units * UNIT_SIZE;
    bool zero = true;
    if (!span_extend(end, more, &zero))
        return;
    mark_taken(end, more, true);
    if (zero)
        check_words(end, more, 0);
    if (run->written)
        write_words(end, more, run->mark);
    run->units += more;
}

/* Sometimes with a kernel that refuses, now and then. */
static void purge(void)
{
    struct span_stats before;
    struct span_stats after;
    span_stats(&before);
    if (random_below(&seed, 3) == 0)
        fake_os_refuse(FAKE_PURGE, 1 + random_below(&seed, 3), 1 + random_below(&seed, 3));
    size_t bytes = span_purge_all();
    bool refused = fake_os_refused() > 0;
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(refused || bytes == before.dirty_bytes);
    CHECK(after.dirty_bytes <= before.dirty_bytes - bytes);
}

static void follows_a_model(void)
{
    init();
    size_t steps = scaled_work(STEPS);
    for (size_t step = 0; step < steps; step++) {
        struct run *run = &runs[random_below(&seed, RUNS)];
        if (random_below(&seed, 500) == 0)
            purge();
        else if (run->at == NULL)
            take(run);
        else if (random_below(&seed, 4) == 0)
            extend(run);
        else
            give(run);
        check_stats();
    }
    for (int i = 0; i < RUNS; i++)
        if (runs[i].at != NULL)
            give(&runs[i]);
    check_stats();
    CHECK(units_taken == 0);
}

static char *take_units(size_t units)
{
    bool zero;
    char *at = span_take(units, 1, &zero);
    CHECK(at != NULL);
    return at;
}

static void prefers_the_fullest(void)
{
    init();
    char *full = take_units(31);
    char *fuller = take_units(22);
    char *full_rest = full + 31 * UNIT_SIZE;
    char *fuller_rest = fuller + 22 * UNIT_SIZE;
    CHECK(take_units(2) == fuller_rest);
    CHECK(take_units(1) == full_rest);
    CHECK(take_units(1) == fuller_rest + 2 * UNIT_SIZE);
    span_give(full, 31, true);
    CHECK(take_units(7) == fuller_rest + 3 * UNIT_SIZE);
    CHECK(take_units(3) == full);
}

static void prefers_units_that_have_their_pages(void)
{
    init();
    bool zero;
    char *clean = span_take(2, 1, &zero);
    char *dirty = span_take(2, 1, &zero);
    char *last = span_take(1, 1, &zero);
    CHECK(clean + 2 * UNIT_SIZE == dirty && dirty + 2 * UNIT_SIZE == last);
    span_give(clean, 2, false);
    span_give(dirty, 2, true);
    CHECK(span_take(2, 1, &zero) == dirty && !zero);
    CHECK(span_take(1, 1, &zero) == clean && zero);
}

static void long_runs_start_on_superslabs(void)
{
    init();
    char *one = take_units(1);
    char *run = take_units(3 * SUPERSLAB_UNITS + 8);
    CHECK((uintptr_t)run % SUPERSLAB_SIZE == 0);
    CHECK(run != one);
    write_words(run, 3 * SUPERSLAB_UNITS + 8, 7);
    /* The rest of the last superslab is free for others. */
    CHECK(take_units(24) == run + 3 * SUPERSLAB_SIZE + 8 * UNIT_SIZE);
    span_give(run, 3 * SUPERSLAB_UNITS + 8, true);
    CHECK(take_units(3 * SUPERSLAB_UNITS) == run);
}

static void aligns_absolutely(void)
{
    init();
    for (size_t align = 1; align <= 1024; align *= 2) {
        for (size_t units = 1; units <= 70; units += 23) {
            bool zero;
            char *at = span_take(units, align, &zero);
            CHECK(at != NULL);
            CHECK((uintptr_t)at % (align * UNIT_SIZE) == 0);
            mark_taken(at, units, true);
        }
    }
}

static void extends_only_into_free_units(void)
{
    init();
    bool zero = false;
    char *run = take_units(4);
    char *next = take_units(2);
    CHECK(next == run + 4 * UNIT_SIZE);
    CHECK(!span_extend(next, 1, &zero));
    CHECK(span_extend(next + 2 * UNIT_SIZE, 26, &zero));
    CHECK(!span_extend(run + SUPERSLAB_SIZE, 33, &zero));
    char *last = arena.base + (arena.limit << POINTER_ALIGN_SHIFT);
    CHECK(!span_extend(last, 1, &zero));
    span_give(next, 28, false);
    CHECK(!span_extend(next, 29, &zero));
    CHECK(span_extend(next, 28, &zero));
}

static void purged_units_read_as_zero(void)
{
    init();
    char *run = take_units(40);
    write_words(run, 40, 1);
    span_give(run, 40, true);
    bool zero = true;
    char *again = span_take(40, 1, &zero);
    CHECK(again == run && !zero);
    check_words(run, 40, 1);
    span_give(run, 40, true);
    CHECK(span_purge_all() == 40 * UNIT_SIZE);
    CHECK(span_purge_all() == 0);
    CHECK(span_take(40, 1, &zero) == run && zero);
    check_words(run, 40, 0);
}

static void units_in_use_are_not_purged(void)
{
    init();
    char *run = take_units(32);
    write_words(run, 32, 9);
    span_give(run, 1, true);
    span_give(run + 16 * UNIT_SIZE, 4, true);
    CHECK(span_purge_all() == 5 * UNIT_SIZE);
    check_words(run, 1, 0);
    check_words(run + 1 * UNIT_SIZE, 15, 9);
    check_words(run + 16 * UNIT_SIZE, 4, 0);
    check_words(run + 20 * UNIT_SIZE, 12, 9);
}

static void purges_by_age(void)
{
    init();
    char *old = take_units(32);
    char *young = take_units(32);
    fake_clock_set(1000);
    span_give(old, 20, true);
    fake_clock_set(2000);
    span_give(young, 32, true);
    CHECK(span_purge_before(1000) == 0);
    CHECK(span_purge_before(1001) == 20 * UNIT_SIZE);
    CHECK(span_purge_before(2000) == 0);
    fake_clock_set(3000);
    span_give(old + 20 * UNIT_SIZE, 12, true);
    CHECK(span_purge_before(3000) == 32 * UNIT_SIZE);
    CHECK(span_purge_before(3001) == 12 * UNIT_SIZE);
}

static void refused_purge_keeps_content(void)
{
    init();
    bool zero = true;
    char *run = take_units(8);
    write_words(run, 8, 3);
    span_give(run, 8, true);
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(span_purge_all() == 0);
    fake_os_obey();
    CHECK(span_take(8, 1, &zero) == run && !zero);
    check_words(run, 8, 3);
    span_give(run, 8, true);
    CHECK(span_purge_all() == 8 * UNIT_SIZE);
}

static void check_refused(unsigned calls, size_t first, size_t units)
{
    struct span_stats before;
    struct span_stats after;
    bool zero;
    span_stats(&before);
    fake_os_refuse(calls, first, FAKE_EVERY);
    CHECK(span_take(units, 1, &zero) == NULL);
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(after.dirty_bytes == before.dirty_bytes);
}

static void refused_memory_is_null(void)
{
    init();
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 1);
    char *first = take_units(32);
    check_refused(FAKE_COMMIT, 1, 1);
    check_refused(FAKE_COMMIT, 1, 200);
    /* Of the neighbours that are next, two are usable already: what lies between takes a call for each part. */
    bool zero;
    char *islands[2];
    for (int i = 0; i < 2; i++)
        islands[i] = span_take(SUPERSLAB_UNITS, 8 * SUPERSLAB_UNITS, &zero);
    for (int i = 0; i < 2; i++)
        span_give(islands[i], SUPERSLAB_UNITS, true);
    check_refused(FAKE_COMMIT, 1, 12 * SUPERSLAB_UNITS);
    check_refused(FAKE_COMMIT, 2, 12 * SUPERSLAB_UNITS);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 4000);
    char *run = take_units(200);
    char *small = take_units(5);
    write_words(first, 32, 1);
    write_words(run, 200, 2);
    write_words(small, 5, 3);
    check_words(first, 32, 1);
    check_words(run, 200, 2);
    check_words(small, 5, 3);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 4000);
    CHECK(take_units(4000) != NULL);
}

/* Room that is committed already needs no system call. */
static void serves_from_what_it_has(void)
{
    init();
    take_units(1);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    for (int i = 1; i < SUPERSLAB_UNITS; i++)
        take_units(1);
    CHECK(fake_os_refused() == 0);
}

static void abandoned_units_stay_away(void)
{
    init();
    char *lost = take_units(8);
    mark_taken(lost, 8, true);
    span_abandon(8);
    for (int i = 0; i < 200; i++)
        mark_taken(take_units(5), 5, true);
    units_taken -= 8;
    check_stats();
}

static void *purge_and_take(void *seed_value)
{
    uint64_t random = (uintptr_t)seed_value;
    char *held[4] = {NULL};
    for (size_t i = 0; i < scaled_work(400000); i++) {
        bool zero;
        char **one = &held[random_below(&random, 4)];
        if (*one != NULL) {
            span_give(*one, 4, true);
            *one = NULL;
        } else {
            *one = span_take(4, 1, &zero);
            CHECK(*one != NULL);
        }
        if (random_below(&random, 2) == 0)
            span_purge_all();
    }
    for (int i = 0; i < 4; i++)
        if (held[i] != NULL)
            span_give(held[i], 4, true);
    return NULL;
}

/* Of the same superslabs, whose dirty units are taken again meanwhile. What is being purged is on one list, which a
 * fork's child goes through; it must be empty at the end. */
static void purges_may_overlap(void)
{
    enum { PURGERS = 6 };
    pthread_t threads[PURGERS];
    init();
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
        UNIT_TEST(follows_a_model),
        UNIT_TEST(prefers_the_fullest),
        UNIT_TEST(prefers_units_that_have_their_pages),
        UNIT_TEST(long_runs_start_on_superslabs),
        UNIT_TEST(aligns_absolutely),
        UNIT_TEST(extends_only_into_free_units),
        UNIT_TEST(purged_units_read_as_zero),
        UNIT_TEST(units_in_use_are_not_purged),
        UNIT_TEST(purges_by_age),
        UNIT_TEST(refused_purge_keeps_content),
        UNIT_TEST(refused_memory_is_null),
        UNIT_TEST(serves_from_what_it_has),
        UNIT_TEST(abandoned_units_stay_away),
        UNIT_TEST(purges_may_overlap),
    };
    return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
