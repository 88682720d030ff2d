/* span/huge.h: which superslabs are put into huge pages, when, and when they are split again. */
#include "unit.h"

#include <string.h>

#include "arena/arena.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "huges.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/shards.h"
#include "span/span.h"

enum { PAGES = 12, RUNS = PAGES + 1 };

/* More units than a page may lack when it becomes huge. */
enum { GIVEN = PAGE_UNITS / 10 };

static char *runs[RUNS]; /* each of a huge page */

static void start(unsigned pages, int content)
{
    size_class_init();
    CHECK(arena_init());
    start_clock();
    for (unsigned i = 0; i < pages; i++) {
        bool zero;
        CHECK((runs[i] = span_take(PAGE_UNITS, PAGE_UNITS, &zero)) != NULL);
        if (content != 0)
            memset(runs[i], content, HUGE_SIZE);
    }
}

static unsigned huge_ones(unsigned pages)
{
    unsigned huge = 0;
    for (unsigned i = 0; i < pages; i++)
        huge += huge_is_at(runs[i]) && huge_is_at(runs[i] + SUPERSLAB_SIZE);
    return huge;
}

static void small_processes_have_none(void)
{
    start(7, 1);
    passes(10);
    CHECK(huge_ones(7) == 0);
}

static void what_has_settled_becomes_huge(void)
{
    start(PAGES, 1);
    passes(1);
    CHECK(huge_ones(PAGES) == 0);
    passes(1);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void what_is_not_full_stays(void)
{
    start(PAGES, 1);
    span_give(runs[3] + 5 * UNIT_SIZE, 1, true);
    passes(1);
    span_give(runs[4] + SUPERSLAB_SIZE + 5 * UNIT_SIZE, 1, true);
    bool zero;
    CHECK(span_take(2, 1, &zero) != NULL && span_take(1, 1, &zero) != NULL); /* the second is of runs[3] or runs[4] */
    passes(1);
    CHECK(huge_ones(PAGES) == PAGES - 2);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES - 1);
}

static void what_is_not_in_memory_stays(void)
{
    start(PAGES, 0);
    memset(runs[0], 1, HUGE_SIZE);
    memset(runs[1], 1, HUGE_SIZE / 4 * 3);
    passes(4);
    CHECK(huge_ones(PAGES) == 1 && huge_is_at(runs[0]));
}

static void policy_says_how_much_is_enough(void)
{
    start(PAGES, 0);
    policy.huge_fill = 75;
    memset(runs[0], 1, HUGE_SIZE / 4 * 3);
    memset(runs[1], 1, HUGE_SIZE / 4 * 3 - UNIT_SIZE);
    passes(4);
    CHECK(huge_ones(PAGES) == 1 && huge_is_at(runs[0]));
}

/* Nobody counts as absent what of it was not in memory. */
static void what_is_wholly_free_is_filled_no_more(void)
{
    start(PAGES, 0);
    policy.huge_fill = 75;
    memset(runs[0], 1, HUGE_SIZE / 4 * 3);
    passes(4);
    CHECK(huge_is_at(runs[0]) && huge_filled == HUGE_SIZE / 4);
    span_give(runs[0], PAGE_UNITS, true);
    CHECK(huge_filled == 0 && span_dirty_bytes() == HUGE_SIZE);
}

static void give_back_meanwhile(void)
{
    char *given = runs[0] + 5 * UNIT_SIZE;
    fake_os_before_collapse(NULL);
    span_give(given, 3, true);
    (void)span_purge_all();
    memset(given, 0, 3 * UNIT_SIZE); /* as the kernel fills what is not there */
}

static void what_a_page_fills_that_was_given_back_goes_back_again(void)
{
    start(PAGES, 1);
    passes(1);
    fake_os_before_collapse(give_back_meanwhile);
    passes(1);
    CHECK(!huge_is_at(runs[0]) && os_resident(runs[0] + 5 * UNIT_SIZE, 3 * UNIT_SIZE) == 0);
    CHECK(os_resident(runs[0], 5 * UNIT_SIZE) == 5 * UNIT_SIZE);
}

static void modes_without_huge_pages_have_none(void)
{
    start(PAGES, 1);
    policy.huge = HUGE_OFF;
    passes(4);
    CHECK(huge_ones(PAGES) == 0);
}

static void refusals_are_no_loss(void)
{
    start(PAGES, 1);
    fake_os_refuse(FAKE_COLLAPSE, 1, FAKE_EVERY);
    passes(4);
    CHECK(huge_ones(PAGES) == 0 && fake_os_refused() > 1);
    fake_os_obey();
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void who_has_none_is_asked_once(void)
{
    start(PAGES, 1);
    fake_os_refuse(FAKE_NEVER_COLLAPSE, 1, FAKE_EVERY);
    passes(4);
    CHECK(huge_ones(PAGES) == 0 && fake_os_refused() == 1);
}

static void not_huge_any_more(void)
{
    CHECK(!huge_is_at(runs[2]));
}

/* Units of it may have come into memory untouched. */
static void what_is_given_back_is_split(void)
{
    start(PAGES, 1);
    passes(2);
    span_give(runs[2], GIVEN, false);
    CHECK(span_dirty_bytes() == GIVEN * UNIT_SIZE && huge_is_at(runs[2]));
    fake_os_before_purge(not_huge_any_more);
    CHECK(span_purge_all() == GIVEN * UNIT_SIZE);
    fake_os_before_purge(NULL);
    CHECK(!huge_is_at(runs[2]) && huge_ones(PAGES) == PAGES - 1);
    bool zero;
    CHECK(span_take(GIVEN, 1, &zero) == runs[2] && zero);
    passes(2);
    CHECK(!huge_is_at(runs[2]));
}

/* They are not worth a huge page, until somebody wants all that there is. */
static void few_free_units_stay(void)
{
    enum { FEW = SUPERSLAB_UNITS / 8, LATER_MS = 60000 };
    start(PAGES, 1);
    passes(2);
    span_give(runs[2], FEW, false);
    span_give(runs[3], FEW, false);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == 0 && huge_is_at(runs[2]) && huge_is_at(runs[3]));
    span_give(runs[2] + FEW * UNIT_SIZE, 1, false);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == (FEW + 1) * UNIT_SIZE && !huge_is_at(runs[2]) && huge_is_at(runs[3]));
    CHECK(span_purge_all() == FEW * UNIT_SIZE && !huge_is_at(runs[3]));
}

/* Units of each were free, and are taken again: nobody looks at them at each heartbeat, and each time that the process grows. */
static void what_is_full_again_is_not_looked_at(void)
{
    enum { LATER_MS = 60000 };
    bool zero;
    start(PAGES, 1);
    passes(2);
    for (unsigned i = 0; i < PAGES; i++) {
        span_give(runs[i], 1, true);
        CHECK(span_take(1, 1, &zero) == runs[i]);
    }
    span_give(runs[3], 1, true);
    now_ms += LATER_MS;
    fake_clock_set(now_ms);
    CHECK(span_purge_old(now_ms, SIZE_MAX) == 0 && huge_ones(PAGES) == PAGES);
    unsigned queued = 0;
    for (unsigned i = 0; i < shards_count(); i++)
        for (const struct list_node *node = span_shards[i].dirty_queue.first; node != NULL; node = node->next)
            queued++;
    CHECK(queued == 1);
    CHECK(span_purge_all() == UNIT_SIZE);
}

/* The other half counts as huge until it gives something back too; both together become a page again. */
static void halves_are_split_by_themselves(void)
{
    start(PAGES, 1);
    passes(2);
    char *half = runs[2] + SUPERSLAB_SIZE;
    span_give(half, 10, true);
    CHECK(span_purge_all() == 10 * UNIT_SIZE);
    CHECK(huge_is_at(runs[2]) && !huge_is_at(half));
    span_give(runs[2], 10, false);
    CHECK(span_dirty_bytes() == 10 * UNIT_SIZE);
    CHECK(span_purge_all() == 10 * UNIT_SIZE && !huge_is_at(runs[2]));
    bool zero;
    for (int i = 0; i < 2; i++)
        memset(span_take(10, 1, &zero), 1, 10 * UNIT_SIZE);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

static void split_half(char *half)
{
    bool zero;
    span_give(half, GIVEN, true);
    CHECK(span_purge_all() == GIVEN * UNIT_SIZE && !huge_is_at(half));
    CHECK(span_take(GIVEN, 1, &zero) == half);
}

static void a_page_with_one_half_split_becomes_huge_again(void)
{
    start(PAGES, 1);
    passes(2);
    char *half = runs[2] + SUPERSLAB_SIZE;
    split_half(half);
    passes(4);
    CHECK(huge_is_at(runs[2]) && !huge_is_at(half)); /* what it has given back is not in memory again */
    size_t filled = huge_filled;
    memset(half, 1, GIVEN * UNIT_SIZE);
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES && huge_filled == filled);
    split_half(runs[2]);
    memset(runs[2], 1, GIVEN * UNIT_SIZE);
    fake_os_refuse(FAKE_COLLAPSE, 1, 1);
    passes(2);
    CHECK(!huge_is_at(runs[2]) && !huge_is_at(half)); /* the kernel was told of both, and then that it may not */
    passes(2);
    CHECK(huge_ones(PAGES) == PAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HUGE_TEST(small_processes_have_none),
        HUGE_TEST(what_has_settled_becomes_huge),
        HUGE_TEST(what_is_not_full_stays),
        HUGE_TEST(what_is_not_in_memory_stays),
        HUGE_TEST(policy_says_how_much_is_enough),
        HUGE_TEST(what_is_wholly_free_is_filled_no_more),
        HUGE_TEST(what_a_page_fills_that_was_given_back_goes_back_again),
        HUGE_TEST(modes_without_huge_pages_have_none),
        HUGE_TEST(refusals_are_no_loss),
        HUGE_TEST(who_has_none_is_asked_once),
        HUGE_TEST(what_is_given_back_is_split),
        HUGE_TEST(few_free_units_stay),
        HUGE_TEST(what_is_full_again_is_not_looked_at),
        HUGE_TEST(halves_are_split_by_themselves),
        HUGE_TEST(a_page_with_one_half_split_becomes_huge_again),
    };
    return cmocka_run_group_tests_name("huge", tests, NULL, NULL);
}
