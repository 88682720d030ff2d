/* span/span.h: where runs are placed, what they are extended by, what happens when memory is refused or lost. */
#include "unit.h"

#include "arena/arena.h"
#include "fake_os.h"
#include "grains.h"
#include "span/span.h"

static void prefers_the_fullest(void)
{
    grains_init();
    char *full = grains_take_any(superslab_grains - 1);
    char *fuller = grains_take_any(superslab_grains - 10);
    char *full_rest = full + (superslab_grains - 1) * grain_bytes;
    char *fuller_rest = fuller + (superslab_grains - 10) * grain_bytes;
    CHECK(grains_take_any(2) == fuller_rest);
    CHECK(grains_take_any(1) == full_rest);
    CHECK(grains_take_any(1) == fuller_rest + 2 * grain_bytes);
    grains_give(full, superslab_grains - 1, false);
    CHECK(grains_take_any(7) == fuller_rest + 3 * grain_bytes);
    CHECK(grains_take_any(3) == full);
}

static void prefers_units_that_have_their_pages(void)
{
    grains_init();
    bool zero;
    char *clean = grains_take(2, 1, &zero);
    char *dirty = grains_take(2, 1, &zero);
    char *last = grains_take(1, 1, &zero);
    CHECK(clean + 2 * grain_bytes == dirty && dirty + 2 * grain_bytes == last);
    grains_give(clean, 2, false);
    grains_give(dirty, 2, true);
    CHECK(grains_take(2, 1, &zero) == dirty && !zero);
    CHECK(grains_take(1, 1, &zero) == clean && zero);
}

static void long_runs_are_found_wherever_they_are(void)
{
    static const struct {
        size_t first, count;
    } holes[] = {{5, 1}, {62, 3}, {100, 64}, {1000, 65}, {4094, 4}, {4200, 1}, {4400, 70}};
    enum { ALL = 4500, HOLES = sizeof holes / sizeof holes[0] };
    bool zero;
    grains_init();
    char *at = span_take((size_t)ALL * SUPERSLAB_UNITS, 1, &zero);
    CHECK(at != NULL);
    for (size_t i = 0; i < HOLES; i++)
        span_give(at + holes[i].first * SUPERSLAB_SIZE, holes[i].count * SUPERSLAB_UNITS, false);
    for (size_t i = 0; i < HOLES; i++)
        if (holes[i].count > 1) /* else it is looked for by its room */
            CHECK(span_take(holes[i].count * SUPERSLAB_UNITS, 1, &zero) == at + holes[i].first * SUPERSLAB_SIZE);
    span_give(at + holes[4].first * SUPERSLAB_SIZE, 4 * SUPERSLAB_UNITS, false);
    CHECK(span_take(2 * SUPERSLAB_UNITS, 1, &zero) == at + holes[4].first * SUPERSLAB_SIZE);
    CHECK(span_take(2 * SUPERSLAB_UNITS, 1, &zero) == at + (holes[4].first + 2) * SUPERSLAB_SIZE);
}

enum { BUSY = 200 };

static char *busy[BUSY];

/* Many superslabs; and before them in the address space `others` that are full. */
static void fill_many(char **others, int count)
{
    grains_init();
    for (int i = 0; i < count; i++)
        others[i] = grains_take_any(superslab_grains);
    for (size_t i = 0; i < BUSY; i++)
        busy[i] = grains_take_any(superslab_grains);
}

/* They get holes of one grain each, of as many different numbers of free units as there are up to a half. */
static void leave_holes(bool dirty)
{
    for (size_t i = 0; i < BUSY; i++)
        for (size_t grain = 0; grain < 2 * (1 + i % (superslab_grains / 2)); grain += 2)
            grains_give(busy[i] + grain * grain_bytes, 1, dirty);
}

static void take_busy(char **others, int count)
{
    fill_many(others, count);
    leave_holes(false);
}

/* One is free from its fourth grain on, and that is found though not all are looked at: not the tightest place either, where many numbers
 * of free units were looked at in vain before. */
static void long_searches_find_what_is_sure(void)
{
    char *others[2];
    take_busy(others, 2);
    char *wide = others[0], *tight = others[1];
    grains_give(wide + 4 * grain_bytes, superslab_grains - 4, false);
    for (size_t grain = 3; grain < superslab_grains; grain += 2)
        grains_give(tight + grain * grain_bytes, 1, false);
    grains_give(tight, 2, false);
    bool is_long = superslab_grains / 2 > 16;
    CHECK(grains_take_any(2) == (is_long ? wide + 4 * grain_bytes : tight));
    CHECK(grains_take_any(superslab_grains / 2) == wide + (is_long ? 6 : 4) * grain_bytes);
}

/* There is no superslab with more. */
static void long_searches_find_what_is_half_free(void)
{
    char *half;
    take_busy(&half, 1);
    grains_give(half, superslab_grains / 2 + 1, false);
    CHECK(grains_take_any(2) == half);
}

/* Nor do pages stay unused where there is more room without. */
static void long_searches_find_pages(void)
{
    char *others[2];
    bool zero;
    take_busy(others, 2);
    char *warm = others[0], *wide = others[1];
    grains_give(warm, superslab_grains / 2 + 1, true);
    grains_give(wide + 1 * grain_bytes, superslab_grains - 1, false);
    CHECK(grains_take(2, 1, &zero) == warm && !zero);
}

/* Nor if many were freed into since, none of which has two neighbours. */
static void long_searches_find_pages_freed_long_ago(void)
{
    char *others[2];
    bool zero;
    fill_many(others, 2);
    char *warm = others[0], *wide = others[1];
    grains_give(warm, superslab_grains / 2 + 1, true);
    grains_give(wide + 1 * grain_bytes, superslab_grains - 1, false);
    leave_holes(true);
    CHECK(grains_take(2, 1, &zero) == warm && !zero);
}

/* Of `grains`, or of fewer. */
static char *take_group(size_t grains, size_t fewer, size_t *got)
{
    unsigned unit = (unsigned)units_per_page();
    struct span_run group = {(unsigned)grains * unit, (unsigned)grains * unit};
    bool zero;
    char *at = span_take_group(&group, (struct span_run){(unsigned)fewer * unit, unit}, &zero);
    *got = group.units / unit;
    CHECK(at != NULL && (uintptr_t)at % (group.align * UNIT_SIZE) == 0);
    return at;
}

static void groups_are_fewer_where_those_have_their_pages(void)
{
    size_t got;
    grains_init();
    char *run = grains_take_any(superslab_grains);
    char *other = grains_take_any(superslab_grains / 2);
    grains_give(run + 5 * grain_bytes, 2, true);
    CHECK(take_group(4, 2, &got) == run + 5 * grain_bytes && got == 2);
    CHECK(take_group(4, 2, &got) == other + superslab_grains / 2 * grain_bytes && got == 4);
    grains_give(run + 5 * grain_bytes, 2, true);
    grains_give(run + 8 * grain_bytes, 4, true);
    CHECK(take_group(4, 2, &got) == run + 8 * grain_bytes && got == 4);
    CHECK(take_group(4, 2, &got) == run + 5 * grain_bytes && got == 2);
}

static void expect_served(const uint64_t *expected)
{
    struct span_stats stats;
    span_stats(&stats);
    for (int stage = 0; stage < SPAN_STAGES; stage++)
        CHECK(stats.served[stage] == expected[stage]);
}

static void counts_what_serves(void)
{
    grains_init();
    char *first = grains_take_any(2);
    expect_served((uint64_t[SPAN_STAGES]){[SPAN_NEW] = 1});
    (void)grains_take_any(1);
    expect_served((uint64_t[SPAN_STAGES]){[SPAN_NEW] = 1, [SPAN_PARTLY] = 1});
    grains_give(first, 2, true);
    (void)grains_take_any(2);
    expect_served((uint64_t[SPAN_STAGES]){[SPAN_NEW] = 1, [SPAN_PARTLY] = 1, [SPAN_WARM] = 1});
    char *run = grains_take_any(3 * superslab_grains);
    grains_give(run, 3 * superslab_grains, true);
    span_purge_all();
    (void)grains_take_any(2 * superslab_grains);
    expect_served((uint64_t[SPAN_STAGES]){[SPAN_NEW] = 2, [SPAN_PARTLY] = 1, [SPAN_WARM] = 1, [SPAN_EMPTY] = 1});
    bool zero = true;
    CHECK(span_extend(run + 2 * SUPERSLAB_SIZE, units_per_page(), &zero));
    expect_served((uint64_t[SPAN_STAGES]){[SPAN_NEW] = 2, [SPAN_PARTLY] = 1, [SPAN_WARM] = 1, [SPAN_EMPTY] = 2});
}

/* Wherever they are: a fuller superslab that has none is passed over. */
static void looks_for_written_units_everywhere(void)
{
    grains_init();
    bool zero;
    char *sparse = grains_take_any(superslab_grains - 9);
    char *fullest = grains_take_any(superslab_grains - 4);
    CHECK(fullest == sparse + SUPERSLAB_SIZE);
    grains_give(sparse, 5, true);
    CHECK(grains_take(4, 1, &zero) == sparse && !zero);
    CHECK(grains_take(2, 1, &zero) == fullest + (superslab_grains - 4) * grain_bytes && zero);
    CHECK(grains_take(1, 1, &zero) == sparse + 4 * grain_bytes && !zero);
}

static void long_runs_start_on_superslabs(void)
{
    grains_init();
    char *one = grains_take_any(1);
    char *run = grains_take_any(3 * superslab_grains + 8);
    CHECK((uintptr_t)run % SUPERSLAB_SIZE == 0);
    CHECK(run != one);
    grains_write_words(run, 3 * superslab_grains + 8, 7);
    /* The rest of the last superslab is free for others. */
    CHECK(grains_take_any(superslab_grains - 8) == run + 3 * SUPERSLAB_SIZE + 8 * grain_bytes);
    grains_give(run, 3 * superslab_grains + 8, true);
    CHECK(grains_take_any(3 * superslab_grains) == run);
}

static void aligns_absolutely(void)
{
    grains_init();
    for (size_t align = 1; align <= 1024; align *= 2) {
        for (size_t grains = 1; grains <= 70; grains += 23) {
            bool zero;
            char *at = grains_take(grains, align, &zero);
            CHECK(at != NULL);
            CHECK((uintptr_t)at % (align * grain_bytes) == 0);
            grains_mark_taken(at, grains, true);
        }
    }
}

static void extends_only_into_free_units(void)
{
    grains_init();
    bool zero = false;
    char *run = grains_take_any(4);
    char *next = grains_take_any(2);
    CHECK(next == run + 4 * grain_bytes);
    CHECK(!grains_extend(next, 1, &zero));
    CHECK(grains_extend(next + 2 * grain_bytes, superslab_grains - 6, &zero));
    CHECK(!grains_extend(run + SUPERSLAB_SIZE, superslab_grains + 1, &zero));
    char *last = arena.base + (arena.limit << POINTER_ALIGN_SHIFT);
    CHECK(!grains_extend(last, 1, &zero));
    grains_give(next, superslab_grains - 4, false);
    CHECK(!grains_extend(next, superslab_grains - 3, &zero));
    CHECK(grains_extend(next, superslab_grains - 4, &zero));
}

static void check_refused(unsigned calls, size_t first, size_t grains)
{
    struct span_stats before;
    struct span_stats after;
    bool zero;
    span_stats(&before);
    fake_os_refuse(calls, first, FAKE_EVERY);
    CHECK(grains_take(grains, 1, &zero) == NULL);
    fake_os_obey();
    span_stats(&after);
    CHECK(after.used_bytes == before.used_bytes);
    CHECK(after.dirty_bytes == before.dirty_bytes);
}

static void refused_memory_is_null(void)
{
    grains_init();
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 1);
    char *first = grains_take_any(superslab_grains);
    check_refused(FAKE_COMMIT, 1, 1);
    check_refused(FAKE_COMMIT, 1, 6 * superslab_grains + 8);
    /* Of the neighbours that are next, two are usable already: what lies between takes a call for each part. */
    bool zero;
    char *islands[2];
    for (int i = 0; i < 2; i++)
        islands[i] = grains_take(superslab_grains, 128 * superslab_grains, &zero);
    for (int i = 0; i < 2; i++)
        grains_give(islands[i], superslab_grains, true);
    check_refused(FAKE_COMMIT, 1, 200 * superslab_grains);
    check_refused(FAKE_COMMIT, 2, 200 * superslab_grains);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 500 * superslab_grains);
    char *run = grains_take_any(6 * superslab_grains + 8);
    char *small = grains_take_any(5);
    grains_write_words(first, superslab_grains, 1);
    grains_write_words(run, 6 * superslab_grains + 8, 2);
    grains_write_words(small, 5, 3);
    grains_check_words(first, superslab_grains, 1);
    grains_check_words(run, 6 * superslab_grains + 8, 2);
    grains_check_words(small, 5, 3);
    check_refused(FAKE_RESERVE | FAKE_COMMIT, 1, 500 * superslab_grains);
    CHECK(grains_take_any(500 * superslab_grains) != NULL);
}

/* Else each would be a mapping of its own for ever. */
static void what_an_alignment_skips_is_usable(void)
{
    grains_init();
    enum { RUNS = 20 };
    bool zero;
    char *runs[RUNS];
    (void)grains_take_any(1);
    for (int i = 0; i < RUNS; i++)
        runs[i] = grains_take(superslab_grains, 2 * superslab_grains, &zero);
    fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    for (int i = 0; i + 1 < RUNS; i++)
        CHECK(grains_take(superslab_grains, 1, &zero) != NULL && zero);
    CHECK(fake_os_refused() == 0);
    for (int i = 0; i + 1 < RUNS; i++)
        CHECK(runs[i + 1] == runs[i] + 2 * SUPERSLAB_SIZE);
}

/* They lie behind a run that is lower, and not usable yet. */
static void usable_superslabs_serve_where_no_more_are_to_be_had(void)
{
    grains_init();
    bool zero;
    char *islands[2];
    for (int i = 0; i < 2; i++)
        islands[i] = grains_take(4 * superslab_grains, 128 * superslab_grains, &zero);
    CHECK(islands[0] != NULL && islands[1] != NULL);
    grains_give(islands[1], 4 * superslab_grains, true);
    fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    CHECK(grains_take(2 * superslab_grains, 1, &zero) == islands[1] && !zero);
    fake_os_obey();
    CHECK(grains_take(2 * superslab_grains, 1, &zero) != NULL);
}

/* Room that is committed already needs no system call. */
static void serves_from_what_it_has(void)
{
    grains_init();
    grains_take_any(1);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    for (size_t i = 1; i < superslab_grains; i++)
        grains_take_any(1);
    CHECK(fake_os_refused() == 0);
}

static void abandoned_units_stay_away(void)
{
    grains_init();
    char *lost = grains_take_any(8);
    grains_mark_taken(lost, 8, true);
    grains_abandon(8);
    for (int i = 0; i < 200; i++)
        grains_mark_taken(grains_take_any(5), 5, true);
    grains_check_stats();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(prefers_the_fullest),
        UNIT_TEST(prefers_units_that_have_their_pages),
        UNIT_TEST(long_runs_are_found_wherever_they_are),
        UNIT_TEST(long_searches_find_what_is_sure),
        UNIT_TEST(long_searches_find_what_is_half_free),
        UNIT_TEST(long_searches_find_pages),
        UNIT_TEST(long_searches_find_pages_freed_long_ago),
        UNIT_TEST(groups_are_fewer_where_those_have_their_pages),
        UNIT_TEST(counts_what_serves),
        UNIT_TEST(looks_for_written_units_everywhere),
        UNIT_TEST(long_runs_start_on_superslabs),
        UNIT_TEST(aligns_absolutely),
        UNIT_TEST(extends_only_into_free_units),
        UNIT_TEST(refused_memory_is_null),
        UNIT_TEST(what_an_alignment_skips_is_usable),
        UNIT_TEST(usable_superslabs_serve_where_no_more_are_to_be_had),
        UNIT_TEST(serves_from_what_it_has),
        UNIT_TEST(abandoned_units_stay_away),
    };
    return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
