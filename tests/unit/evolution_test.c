/* learn/evolution.h: which change of a policy is worth a try. */
#include "unit.h"

#include "base/bits.h"
#include "config/policy.h"
#include "heap/magazine.h"
#include "learn/evolution.h"
#include "learn/prices.h"

enum { CLASS = 30, BIN = 4, PATIENT = 1000000 };

static struct prospect prospects[PROSPECTS_MOST];
static const struct arm mode;

static const struct prospect *find(unsigned count, enum knob knob, unsigned index, bool up)
{
    for (unsigned i = 0; i < count; i++)
        if (prospects[i].knob == knob && prospects[i].index == index && prospects[i].up == up)
            return &prospects[i];
    return NULL;
}

static unsigned look(const struct epoch *seen)
{
    return evolution_prospects(prospects, &mode, seen, LEARN_ALL, PATIENT);
}

/* Refills are what costs. */
static struct epoch refilling(void)
{
    struct epoch epoch = {.requested = MIB, .ms = 100};
    size_class_init();
    epoch.refills[CLASS] = 1000;
    epoch.ns[COST_REFILLS] = 100000;
    return epoch;
}

/* Faults of large blocks are; `kept` bytes are kept meanwhile. */
static struct epoch missing(uint64_t kept)
{
    struct epoch epoch = {.requested = MIB, .ms = 100, .kept_most = kept};
    epoch.large[BIN] = 10;
    epoch.ns[COST_FAULTS] = 1000000;
    epoch.held_ms[COST_KEPT] = kept * 100;
    epoch.ns[COST_KEPT] = 1000;
    return epoch;
}

static void steps_double_and_halve_within_limits(void)
{
    CHECK(evolution_step(KNOB_BIGCACHE_BYTES, 8 * MIB, true) == 16 * MIB);
    CHECK(evolution_step(KNOB_BIGCACHE_BYTES, 8 * MIB, false) == 4 * MIB);
    CHECK(evolution_step(KNOB_BIGCACHE_BYTES, 4 * MIB, false) == 0);
    CHECK(evolution_step(KNOB_BIGCACHE_BYTES, 0, true) == 4 * MIB);
    CHECK(evolution_step(KNOB_BIGCACHE_BYTES, 0, false) == 0);
    CHECK(evolution_step(KNOB_PURGE_MS, 1000, true) == 4000 && evolution_step(KNOB_PURGE_MS, 1000, false) == 250);
    CHECK(evolution_step(KNOB_PURGE_MS, 8000, true) == 8000); /* nobody waits so long for a result */
    CHECK(evolution_step(KNOB_BATCH_EIGHTHS, 4, true) == 6 && evolution_step(KNOB_BATCH_EIGHTHS, 8, true) == 8);
    for (enum knob knob = 0; knob < KNOBS; knob++) {
        uint64_t value = knob_of_mode(knob, 0);
        for (int i = 0; i < 100; i++)
            value = evolution_step(knob, value, true);
        CHECK(value <= knob_info[knob].most);
        for (int i = 0; i < 100; i++)
            value = evolution_step(knob, value, false);
        CHECK(value == knob_info[knob].least);
    }
}

static void refills_want_wider_magazines(void)
{
    struct epoch epoch = refilling();
    unsigned count = look(&epoch);
    CHECK(find(count, KNOB_MAGAZINE_BYTES, CLASS, true) != NULL && find(count, KNOB_MAGAZINE_BYTES, CLASS, false) == NULL);
    CHECK(find(count, KNOB_MAGAZINE_BYTES, CLASS - 1, true) == NULL && find(count, KNOB_BIGCACHE_BYTES, 0, true) == NULL);
    epoch.ns[COST_CACHED] = 1000000; /* they cost more than they save */
    count = look(&epoch);
    CHECK(find(count, KNOB_MAGAZINE_BYTES, CLASS, true) == NULL && find(count, KNOB_MAGAZINE_BYTES, CLASS, false) != NULL);
}

static void a_magazine_with_all_its_slots_cannot_grow(void)
{
    struct epoch epoch = refilling();
    epoch.refills[1] = epoch.refills[CLASS]; /* 16 bytes: 512 slots are 8 KiB */
    unsigned count = look(&epoch);
    CHECK(find(count, KNOB_MAGAZINE_BYTES, CLASS, true) != NULL && find(count, KNOB_MAGAZINE_BYTES, 1, true) == NULL);
}

static void misses_want_a_larger_budget_if_it_is_used_up(void)
{
    struct epoch epoch = missing(knob_of_mode(KNOB_BIGCACHE_BYTES, 0));
    unsigned count = look(&epoch);
    CHECK(find(count, KNOB_BIGCACHE_BYTES, 0, true) != NULL && find(count, KNOB_BIGCACHE_MS, BIN, true) == NULL);
    epoch = missing(MIB);
    count = look(&epoch);
    CHECK(find(count, KNOB_BIGCACHE_BYTES, 0, true) == NULL && find(count, KNOB_BIGCACHE_MS, BIN, true) != NULL);
    CHECK(evolution_prospects(prospects, &mode, &epoch, LEARN_ALL & ~(unsigned)LEARN_BIGCACHE, PATIENT) == 0);
    CHECK(find(evolution_prospects(prospects, &mode, &epoch, LEARN_ALL, 3999), KNOB_BIGCACHE_MS, BIN, true) == NULL);
}

/* Blocks that the BigCache has no room for come from the span layer with their pages: no fault, but a run of units each. */
static void runs_of_units_are_misses_too(void)
{
    struct epoch epoch = missing(knob_of_mode(KNOB_BIGCACHE_BYTES, 0));
    epoch.ns[COST_FAULTS] = 0;
    epoch.large[BIN] = 1000;
    epoch.ns[COST_LARGE] = (uint64_t)1000 * (PRICE_LARGE + PRICE_UNITS);
    CHECK(find(look(&epoch), KNOB_BIGCACHE_BYTES, 0, true) != NULL);
    epoch.ns[COST_LARGE] = (uint64_t)1000 * PRICE_LARGE;
    CHECK(find(look(&epoch), KNOB_BIGCACHE_BYTES, 0, true) == NULL);
}

static void memory_wants_less_to_be_kept(void)
{
    struct epoch epoch = missing(knob_of_mode(KNOB_BIGCACHE_BYTES, 0));
    epoch.ns[COST_FAULTS] = 1000;
    epoch.ns[COST_KEPT] = epoch.ns[COST_DIRTY] = 1000000;
    unsigned count = look(&epoch);
    CHECK(find(count, KNOB_BIGCACHE_BYTES, 0, false) != NULL && find(count, KNOB_PURGE_MS, 0, false) != NULL);
    CHECK(find(count, KNOB_BIGCACHE_BYTES, 0, true) == NULL && find(count, KNOB_PURGE_MS, 0, true) == NULL);
}

static void what_was_purged_too_early_wants_a_longer_delay(void)
{
    struct epoch epoch = {.requested = MIB, .ms = 100, .purged = 400 * 4096};
    epoch.ns[COST_FAULTS] = 1000000;
    unsigned count = look(&epoch);
    CHECK(find(count, KNOB_PURGE_MS, 0, true) != NULL);
    epoch.purged = 0; /* the program's own faults */
    CHECK(find(look(&epoch), KNOB_PURGE_MS, 0, true) == NULL);
}

static void little_is_not_worth_it(void)
{
    struct epoch epoch = refilling();
    epoch.work_ns = 100000ull * 1000; /* a thousandth of the work, of which half might be saved */
    CHECK(look(&epoch) == 0);
    epoch.work_ns = 100000ull * 100;
    CHECK(look(&epoch) > 0);
    CHECK(look(&(struct epoch){0}) == 0);
}

static void what_is_pinned_is_left_alone(void)
{
    struct epoch epoch = missing(knob_of_mode(KNOB_BIGCACHE_BYTES, 0));
    knob_pin(KNOB_BIGCACHE_BYTES);
    CHECK(find(look(&epoch), KNOB_BIGCACHE_BYTES, 0, true) == NULL);
}

static void chance_is_in_proportion(void)
{
    enum { ROUNDS = 30000 };
    const struct prospect three[] = {
        {KNOB_PURGE_MS, 0, true, 0.1, 0}, {KNOB_BIGCACHE_BYTES, 0, true, 0.3, 0}, {KNOB_PURGE_MS, 0, false, 0.2, 0}};
    struct tried tried = {.count = 0};
    uint64_t random = 99;
    int chosen[3] = {0};
    for (int i = 0; i < ROUNDS; i++)
        chosen[evolution_choose(three, 3, &tried, &random) - three]++;
    CHECK(chosen[0] > 0.94 * ROUNDS / 6 && chosen[0] < 1.06 * ROUNDS / 6);
    CHECK(chosen[1] > 0.97 * ROUNDS / 2 && chosen[1] < 1.03 * ROUNDS / 2);
    tried_note(&tried, &three[1]);
    for (int i = 0; i < ROUNDS / 10; i++)
        CHECK(evolution_choose(three, 3, &tried, &random) != &three[1]);
    tried_note(&tried, &three[0]);
    tried_note(&tried, &three[2]);
    CHECK(evolution_choose(three, 3, &tried, &random) == NULL);
    struct prospect more = three[0];
    more.worth = 0.25; /* more than twice what it was when it was tried */
    CHECK(evolution_choose(&more, 1, &tried, &random) == &more);
    for (int i = 0; i < TRIED_MOST; i++)
        tried_note(&tried, &three[1]);
    CHECK(evolution_choose(three, 3, &tried, &random) != NULL);
}

static void a_child_differs_in_one_value(void)
{
    struct arm parent = {.elo = elo_unknown(), .proven = 3, .judged = true, .gains = 5};
    struct arm child;
    arm_set(&parent, KNOB_PURGE_MS, 0, 50);
    evolution_make(&child, &parent, &(struct prospect){KNOB_BIGCACHE_BYTES, 0, true, 0.1, 0});
    CHECK(child.count == 2 && arm_value(&child, KNOB_PURGE_MS, 0) == 50);
    CHECK(arm_value(&child, KNOB_BIGCACHE_BYTES, 0) == 2 * knob_of_mode(KNOB_BIGCACHE_BYTES, 0));
    CHECK(child.proven == 0 && !child.judged && child.gains == 0);
}

/* Where refills are spread over many classes none of them is worth a try alone. */
static void many_classes_change_together(void)
{
    struct epoch epoch = refilling();
    for (unsigned class = CLASS; class < CLASS + 8; class++)
        epoch.refills[class] = 125;
    epoch.refills[1] = 1; /* hardly used */
    const struct prospect *found = find(look(&epoch), KNOB_BATCH_EIGHTHS, CLASS, true);
    CHECK(found != NULL && found->classes == (uint64_t)0xff << CLASS);
    CHECK(find(look(&epoch), KNOB_BATCH_EIGHTHS, CLASS + 1, true) == NULL);
    struct arm child;
    evolution_make(&child, &mode, found);
    CHECK(child.count == 8);
    CHECK(arm_value(&child, KNOB_BATCH_EIGHTHS, CLASS + 7) == knob_of_mode(KNOB_BATCH_EIGHTHS, 0) + 2);
    struct tried tried = {.count = 0};
    struct prospect others = *found;
    tried_note(&tried, found);
    others.classes <<= 1; /* the same change, where the program uses other classes by now */
    others.index++;
    CHECK(tried_has(&tried, &others));
    others.classes = 0;
    CHECK(!tried_has(&tried, &others));
}

/* Magazines that are wider, but may not hold more in all, win nothing; nor does it help to let them, if they are full. */
static void wider_magazines_may_hold_more_together(void)
{
    const uint64_t bytes = knob_of_mode(KNOB_MAGAZINE_BYTES, 0);
    const uint64_t all = knob_of_mode(KNOB_THREAD_CACHE_BYTES, 0);
    const unsigned few = (unsigned)(all / MAGAZINES_SHARE / bytes / 2);
    size_class_init();
    struct arm child;
    struct prospect wider = {KNOB_MAGAZINE_BYTES, SIZE_CLASSES_FIXED - 8, true, 0.4, (uint64_t)0xff << (SIZE_CLASSES_FIXED - 8)};
    evolution_make(&child, &mode, &wider);
    CHECK(child.count == 9);
    CHECK(arm_value(&child, KNOB_MAGAZINE_BYTES, wider.index) == 2 * bytes);
    uint64_t room = arm_value(&child, KNOB_THREAD_CACHE_BYTES, 0) / MAGAZINES_SHARE;
    CHECK(room >= 16 * bytes && room < 32 * bytes);

    wider.classes = ((uint64_t)1 << few) - 1;
    wider.classes <<= wider.index;
    evolution_make(&child, &mode, &wider);
    CHECK(child.count == few);

    /* Of small blocks, of which a magazine has all that it can hold. */
    wider.classes = 0xff;
    wider.index = 0;
    evolution_make(&child, &mode, &wider);
    CHECK(arm_value(&child, KNOB_THREAD_CACHE_BYTES, 0) / MAGAZINES_SHARE < 16 * bytes);

    /* Narrower ones leave it, and a single one does. */
    wider.up = false;
    evolution_make(&child, &mode, &wider);
    CHECK(child.count == 8);
    wider = (struct prospect){KNOB_MAGAZINE_BYTES, SIZE_CLASSES_FIXED - 1, true, 0.4, 0};
    evolution_make(&child, &mode, &wider);
    CHECK(child.count == 1);
}

static void a_step_goes_on_if_there_is_another_that_shows_in_time(void)
{
    struct arm arm = mode;
    struct prospect longer = {.knob = KNOB_PURGE_MS, .up = true};
    arm_set(&arm, KNOB_PURGE_MS, 0, 250);
    CHECK(evolution_goes_on(&arm, &longer, 1000) && !evolution_goes_on(&arm, &longer, 999));
    longer.up = false;
    CHECK(evolution_goes_on(&arm, &longer, 250) && !evolution_goes_on(&arm, &longer, 249));
    struct prospect wider = {.knob = KNOB_MAGAZINE_BYTES, .index = CLASS, .up = true};
    CHECK(evolution_goes_on(&arm, &wider, 0));
    arm_set(&arm, KNOB_MAGAZINE_BYTES, CLASS, knob_info[KNOB_MAGAZINE_BYTES].most);
    CHECK(!evolution_goes_on(&arm, &wider, PATIENT));
}

static void presets_differ_from_the_mode(void)
{
    struct arm arm;
    unsigned number = 0;
    for (; evolution_preset(&arm, number, LEARN_ALL); number++)
        CHECK(arm.count == 1);
    CHECK(number >= 4);
    CHECK(evolution_preset(&arm, 0, LEARN_ALL & ~(unsigned)LEARN_BIGCACHE) && arm.count == 0);
    for (number = 0; evolution_preset(&arm, number, LEARN_CLASSES | LEARN_SITES); number++)
        CHECK(arm.count == 0); /* what is of no part is not theirs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(steps_double_and_halve_within_limits),
        UNIT_TEST(refills_want_wider_magazines),
        UNIT_TEST(a_magazine_with_all_its_slots_cannot_grow),
        UNIT_TEST(misses_want_a_larger_budget_if_it_is_used_up),
        UNIT_TEST(runs_of_units_are_misses_too),
        UNIT_TEST(memory_wants_less_to_be_kept),
        UNIT_TEST(what_was_purged_too_early_wants_a_longer_delay),
        UNIT_TEST(little_is_not_worth_it),
        UNIT_TEST(what_is_pinned_is_left_alone),
        UNIT_TEST(chance_is_in_proportion),
        UNIT_TEST(a_child_differs_in_one_value),
        UNIT_TEST(many_classes_change_together),
        UNIT_TEST(wider_magazines_may_hold_more_together),
        UNIT_TEST(a_step_goes_on_if_there_is_another_that_shows_in_time),
        UNIT_TEST(presets_differ_from_the_mode),
    };
    return cmocka_run_group_tests_name("evolution", tests, NULL, NULL);
}
