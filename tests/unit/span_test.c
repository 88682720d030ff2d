/*
 * span/span.h: a model of which units are taken and what they hold, placement, purging, refusals.
 *
 * Everything is counted in grains: units, or as many units as a page covers where pages are larger.
 */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "arena/arena.h"
#include "fake_os.h"
#include "random.h"
#include "scale.h"
#include "span/span.h"

enum { RUNS = 64, STEPS = 20000, GRAINS_MOST = 1 << 18 };

struct run {
    char *at;
    size_t grains;
    uint64_t mark;
    bool written;
};

static struct run runs[RUNS];
static size_t units_in_grain;
static size_t grain_bytes;
static size_t in_superslab; /* grains */
static bool taken[GRAINS_MOST]; /* by index of grain */
static size_t grains_taken;
static uint64_t seed = 6;

/* Where runs are written to and looked at: both ends of each grain and a word within. */
enum { PLACES = 3 };
static size_t places[PLACES];

static void init(void)
{
    size_class_init();
    CHECK(arena_init());
    units_in_grain = units_per_page();
    grain_bytes = units_in_grain * UNIT_SIZE;
    in_superslab = SUPERSLAB_UNITS / units_in_grain;
    places[1] = 12296;
    places[2] = grain_bytes - sizeof(uint64_t);
}

static char *take(size_t grains, size_t align, bool *zero)
{
    return span_take(grains * units_in_grain, align * units_in_grain, zero);
}

static void give(char *at, size_t grains, bool dirty)
{
    span_give(at, grains * units_in_grain, dirty);
}

static bool extend(char *end, size_t grains, bool *zero)
{
    return span_extend(end, grains * units_in_grain, zero);
}

static size_t grain_of(const char *at)
{
    return arena_unit(at) / units_in_grain;
}

static void mark_taken(const char *at, size_t grains, bool now)
{
    for (size_t grain = grain_of(at); grain < grain_of(at) + grains; grain++) {
        CHECK(grain < GRAINS_MOST);
        CHECK(taken[grain] != now);
        taken[grain] = now;
    }
    grains_taken += now ? grains : 0 - grains;
}

static void check_words(const char *at, size_t grains, uint64_t wanted)
{
    for (size_t grain = 0; grain < grains; grain++) {
        for (size_t i = 0; i < PLACES; i++) {
            uint64_t found;
            memcpy(&found, at + grain * grain_bytes + places[i], sizeof found);
            CHECK(found == wanted);
        }
    }
}

static void write_words(char *at, size_t grains, uint64_t mark)
{
    for (size_t grain = 0; grain < grains; grain++)
        for (size_t i = 0; i < PLACES; i++)
            memcpy(at + grain * grain_bytes + places[i], &mark, sizeof mark);
}

static void check_stats(void)
{
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == grains_taken * grain_bytes);
    CHECK(stats.committed_bytes >= stats.used_bytes + stats.dirty_bytes);
    CHECK(stats.reserved_bytes >= stats.committed_bytes);
}

static void take_run(struct run *run)
{
    size_t align = (size_t)1 << (random_below(&seed, 4) == 0 ? random_below(&seed, 7) : 0);
    bool zero = false;
    run->grains = 1 + random_below(&seed, random_below(&seed, 4) == 0 ? 3 * in_superslab : 12);
    run->at = take(run->grains, align, &zero);
    CHECK(run->at != NULL);
    CHECK((uintptr_t)run->at % (align * grain_bytes) == 0);
    CHECK(grain_of(run->at) % in_superslab + run->grains <= in_superslab ||
          (run->grains > in_superslab && grain_of(run->at) % in_superslab == 0));
    mark_taken(run->at, run->grains, true);
    if (zero)
        check_words(run->at, run->grains, 0);
    run->written = random_below(&seed, 4) != 0;
    run->mark = random_next(&seed) | 1;
    if (run->written)
        write_words(run->at, run->grains, run->mark);
}

static void give_run(struct run *run)
{
    if (run->written)
        check_words(run->at, run->grains, run->mark);
    size_t first = random_below(&seed, 3) == 0 ? random_below(&seed, run->grains) : 0;
    mark_taken(run->at, run->grains, false);
    /* Not written by this run does not mean clean: it may hold what an earlier one wrote. */
    if (first > 0)
        give(run->at, first, true);
    give(run->at + first * grain_bytes, run->grains - first, true);
    run->at = NULL;
}

static void extend_run(struct run *run)
{
    size_t more = 1 + random_below(&seed, 6);
    char *end = run->at + run->grains * grain_bytes;
    bool zero = true;
    if (!extend(end, more, &zero))
        return;
    mark_taken(end, more, true);
    if (zero)
        check_words(end, more, 0);
    if (run->written)
        write_words(end, more, run->mark);
    run->grains += more;
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
            take_run(run);
        else if (random_below(&seed, 4) == 0)
            extend_run(run);
        else
            give_run(run);
        check_stats();
    }
    for (int i = 0; i < RUNS; i++)
        if (runs[i].at != NULL)
            give_run(&runs[i]);
    check_stats();
    CHECK(grains_taken == 0);
}

static char *take_grains(size_t grains)
{
    bool zero;
    char *at = take(grains, 1, &zero);
    CHECK(at != NULL);
    return at;
}

static void prefers_the_fullest(void)
{
    init();
    char *full = take_grains(in_superslab - 1);
    char *fuller = take_grains(in_superslab - 10);
    char *full_rest = full + (in_superslab - 1) * grain_bytes;
    char *fuller_rest = fuller + (in_superslab - 10) * grain_bytes;
    CHECK(take_grains(2) == fuller_rest);
    CHECK(take_grains(1) == full_rest);
    CHECK(take_grains(1) == fuller_rest + 2 * grain_bytes);
    give(full, in_superslab - 1, false);
    CHECK(take_grains(7) == fuller_rest + 3 * grain_bytes);
    CHECK(take_grains(3) == full);
}

static void prefers_units_that_have_their_pages(void)
{
    init();
    bool zero;
    char *clean = take(2, 1, &zero);
    char *dirty = take(2, 1, &zero);
    char *last = take(1, 1, &zero);
    CHECK(clean + 2 * grain_bytes == dirty && dirty + 2 * grain_bytes == last);
    give(clean, 2, false);
    give(dirty, 2, true);
    CHECK(take(2, 1, &zero) == dirty && !zero);
    CHECK(take(1, 1, &zero) == clean && zero);
}

/* Wherever they are: a fuller superslab that has none is passed over. */
static void looks_for_written_units_everywhere(void)
{
    init();
    bool zero;
    char *sparse = take_grains(in_superslab - 9);
    char *fullest = take_grains(in_superslab - 4);
    CHECK(fullest == sparse + SUPERSLAB_SIZE);
    give(sparse, 5, true);
    CHECK(take(4, 1, &zero) == sparse && !zero);
    CHECK(take(2, 1, &zero) == fullest + (in_superslab - 4) * grain_bytes && zero);
    CHECK(take(1, 1, &zero) == sparse + 4 * grain_bytes && !zero);
}

static void long_runs_start_on_superslabs(void)
{
    init();
    char *one = take_grains(1);
    char *run = take_grains(3 * in_superslab + 8);
    CHECK((uintptr_t)run % SUPERSLAB_SIZE == 0);
    CHECK(run != one);
    write_words(run, 3 * in_superslab + 8, 7);
    /* The rest of the last superslab is free for others. */
    CHECK(take_grains(in_superslab - 8) == run + 3 * SUPERSLAB_SIZE + 8 * grain_bytes);
    give(run, 3 * in_superslab + 8, true);
    CHECK(take_grains(3 * in_superslab) == run);
}

static void aligns_absolutely(void)
{
    init();
    for (size_t align = 1; align <= 1024; align *= 2) {
        for (size_t grains = 1; grains <= 70; grains += 23) {
            bool zero;
            char *at = take(grains, align, &zero);
            CHECK(at != NULL);
            CHECK((uintptr_t)at % (align * grain_bytes) == 0);
            mark_taken(at, grains, true);
        }
    }
}

static void extends_only_into_free_units(void)
{
    init();
    bool zero = false;
    char *run = take_grains(4);
    char *next = take_grains(2);
    CHECK(next == run + 4 * grain_bytes);
    CHECK(!extend(next, 1, &zero));
    CHECK(extend(next + 2 * grain_bytes, in_superslab - 6, &zero));
    CHECK(!extend(run + SUPERSLAB_SIZE, in_superslab + 1, &zero));
    char *last = arena.base + (arena.limit << POINTER_ALIGN_SHIFT);
    CHECK(!extend(last, 1, &zero));
    give(next, in_superslab - 4, false);
    CHECK(!extend(next, in_superslab - 3, &zero));
    CHECK(extend(next, in_superslab - 4, &zero));
}

static void purged_units_read_as_zero(void)
{
    init();
    char *run = take_grains(40);
    write_words(run, 40, 1);
    give(run, 40, true);
    bool zero = true;
    char *again = take(40, 1, &zero);
    CHECK(again == run && !zero);
    check_words(run, 40, 1);
    give(run, 40, true);
    CHECK(span_purge_all() == 40 * grain_bytes);
    CHECK(span_purge_all() == 0);
    CHECK(take(40, 1, &zero) == run && zero);
    check_words(run, 40, 0);
}

static void units_in_use_are_not_purged(void)
{
    init();
    char *run = take_grains(32);
    write_words(run, 32, 9);
    give(run, 1, true);
    give(run + 16 * grain_bytes, 4, true);
    CHECK(span_purge_all() == 5 * grain_bytes);
    check_words(run, 1, 0);
    check_words(run + 1 * grain_bytes, 15, 9);
    check_words(run + 16 * grain_bytes, 4, 0);
    check_words(run + 20 * grain_bytes, 12, 9);
}

static void purges_by_age(void)
{
    init();
    char *old = take_grains(in_superslab);
    char *young = take_grains(in_superslab);
    fake_clock_set(1000);
    give(old, 20, true);
    fake_clock_set(2000);
    give(young, in_superslab, true);
    CHECK(span_purge_before(1000) == 0);
    CHECK(span_purge_before(1001) == 20 * grain_bytes);
    CHECK(span_purge_before(2000) == 0);
    fake_clock_set(3000);
    give(old + 20 * grain_bytes, 12, true);
    CHECK(span_purge_before(3000) == SUPERSLAB_SIZE);
    CHECK(span_purge_before(3001) == 12 * grain_bytes);
}

static void refused_purge_keeps_content(void)
{
    init();
    bool zero = true;
    char *run = take_grains(8);
    write_words(run, 8, 3);
    give(run, 8, true);
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    CHECK(span_purge_all() == 0);
    fake_os_obey();
    CHECK(take(8, 1, &zero) == run && !zero);
    check_words(run, 8, 3);
    give(run, 8, true);
    CHECK(span_purge_all() == 8 * grain_bytes);
}

static void check_refused(unsigned calls, size_t first, size_t grains)
{
    struct span_stats before;
    struct span_stats after;
    bool zero;
    span_stats(&before);
    fake_os_refuse(calls, first, FAKE_EVERY);
    CHECK(take(grains, 1, &zero) == NULL);
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(after.dirty_bytes == before.dirty_bytes);
}

static void refused_memory_is_null(void)
{
    init();
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 1);
    char *first = take_grains(in_superslab);
    check_refused(FAKE_COMMIT, 1, 1);
    check_refused(FAKE_COMMIT, 1, 6 * in_superslab + 8);
    /* Of the neighbours that are next, two are usable already: what lies between takes a call for each part. */
    bool zero;
    char *islands[2];
    for (int i = 0; i < 2; i++)
        islands[i] = take(in_superslab, 8 * in_superslab, &zero);
    for (int i = 0; i < 2; i++)
        give(islands[i], in_superslab, true);
    check_refused(FAKE_COMMIT, 1, 12 * in_superslab);
    check_refused(FAKE_COMMIT, 2, 12 * in_superslab);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 125 * in_superslab);
    char *run = take_grains(6 * in_superslab + 8);
    char *small = take_grains(5);
    write_words(first, 32, 1);
    write_words(run, 6 * in_superslab + 8, 2);
    write_words(small, 5, 3);
    check_words(first, 32, 1);
    check_words(run, 6 * in_superslab + 8, 2);
    check_words(small, 5, 3);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 125 * in_superslab);
    CHECK(take_grains(125 * in_superslab) != NULL);
}

/* Room that is committed already needs no system call. */
static void serves_from_what_it_has(void)
{
    init();
    take_grains(1);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    for (size_t i = 1; i < in_superslab; i++)
        take_grains(1);
    CHECK(fake_os_refused() == 0);
}

static void abandoned_units_stay_away(void)
{
    init();
    char *lost = take_grains(8);
    mark_taken(lost, 8, true);
    span_abandon(8 * units_in_grain);
    for (int i = 0; i < 200; i++)
        mark_taken(take_grains(5), 5, true);
    grains_taken -= 8;
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
            give(*one, 4, true);
            *one = NULL;
        } else {
            *one = take(4, 1, &zero);
            CHECK(*one != NULL);
        }
        if (random_below(&random, 2) == 0)
            span_purge_all();
    }
    for (int i = 0; i < 4; i++)
        if (held[i] != NULL)
            give(held[i], 4, true);
    return NULL;
}

/* Of the same superslabs, whose dirty grains are taken again meanwhile. What is being purged is on one list, which a
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
        UNIT_TEST(looks_for_written_units_everywhere),
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
