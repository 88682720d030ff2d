/* learn/fit.h: programs whose sizes fall badly, or well; growth, shrinking, forks; observe mode. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "api/stats.h"
#include "config/policy.h"
#include "config/size_class.h"
#include "heap/classes.h"
#include "heap/events.h"
#include "heap/heartbeat.h"
#include "heaps.h"
#include "learn/decisions.h"
#include "learn/fit.h"
#include "random.h"
#include "scale.h"
#include "span/limit.h"

enum { BLOCKS = 40000, PER_EPOCH = 2000 };

static void *blocks[BLOCKS];
static uint64_t epochs;
static size_t opened;
static uint64_t last_evidence;

static void learn(enum learn learn)
{
    policy.learn = learn;
    policy.learn_parts = LEARN_CLASSES;
    policy.learn_is_pinned = true;
    policy.heartbeat_bytes = 1 << 20;
    heap_own();
    fit_follow_policy();
}

/* Allocates blocks, of these sizes in turn, an epoch ending now and then; returns the bytes held. */
static size_t grow(const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(sizes[i % count]);
        if (i % PER_EPOCH == PER_EPOCH - 1)
            fit_epoch(100 * ++epochs);
    }
    return limit_held();
}

static void shrink(size_t to)
{
    for (size_t i = to; i < BLOCKS; i++) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
}

static void count_opened(size_t size, uint64_t evidence, void *argument)
{
    size_t *last = argument;
    CHECK(evidence > 0);
    last_evidence = evidence;
    *last = size;
    opened++;
}

static size_t opened_sizes(size_t *last)
{
    size_t unused;
    opened = 0;
    fit_each(count_opened, last != NULL ? last : &unused);
    return opened;
}

static size_t decisions_of(enum decision_kind kind, bool applied)
{
    struct decision known[DECISIONS_KEPT];
    size_t count = decisions_copy(known, DECISIONS_KEPT);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(known[i].ms > 0 && known[i].subject % 16 == 0 && known[i].evidence > 0);
        CHECK(known[i].gain > 0 && known[i].gain < 250000);
        found += known[i].kind == kind && (known[i].applied != 0) == applied;
    }
    return found;
}

static const size_t bad[] = {1040, 2064, 136, 640 + 16};
static const size_t good[] = {1280, 2048, 160, 640, 48};

static void sizes_that_fall_badly(void)
{
    learn(LEARN_OFF);
    size_t before = grow(bad, 4);
    CHECK(opened_sizes(NULL) == 0);
    shrink(0);
    hak_malloc_trim(0);
    policy.learn = LEARN_ON;
    fit_follow_policy();
    size_t after = grow(bad, 4);
    CHECK(opened_sizes(NULL) >= 3 && fit_has_opened());
    CHECK(after * 100 <= before * 88);
    CHECK(decisions_of(DECIDED_CLASS_OPENED, true) == opened);
}

static void sizes_that_fall_well(void)
{
    learn(LEARN_ON);
    grow(good, 5);
    CHECK(opened_sizes(NULL) == 0);
    CHECK(decisions_of(DECIDED_CLASS_OPENED, true) == 0);
}

static void observe_mode_changes_nothing(void)
{
    learn(LEARN_OBSERVE);
    grow(bad, 4);
    CHECK(opened_sizes(NULL) == 0 && classes_defined == 0);
    size_t wished = decisions_of(DECIDED_CLASS_OPENED, false);
    CHECK(wished >= 3 && wished <= 6);
    CHECK(decisions_of(DECIDED_CLASS_OPENED, true) == 0);
    shrink(0);
    grow(bad, 4);
    CHECK(decisions_of(DECIDED_CLASS_OPENED, false) == wished); /* once each */
}

/* What an earlier run has learned stays open, though this one would do without. */
static void observe_mode_closes_nothing(void)
{
    learn(LEARN_OBSERVE);
    CHECK(fit_preset(1040, 5));
    grow(bad, 1);
    shrink(10);
    for (int i = 0; i < 60; i++)
        fit_epoch(100 * ++epochs);
    CHECK(opened_sizes(NULL) == 1);
    CHECK(decisions_of(DECIDED_CLASS_CLOSED, true) == 0 && decisions_of(DECIDED_CLASS_CLOSED, false) == 1);
}

static void off_is_off(void)
{
    learn(LEARN_OFF);
    CHECK(heap_events.refilled == NULL);
    grow(bad, 4);
    CHECK(classes_defined == 0);
    policy.learn = LEARN_ON;
    policy.learn_parts = LEARN_ALL & ~(unsigned)LEARN_CLASSES;
    fit_follow_policy();
    CHECK(heap_events.refilled == NULL);
}

enum { LARGE = 4 << 20 };

static void who_has_held_much_needs_no_learner(void)
{
    learn(LEARN_OFF);
    policy.learn_is_pinned = false;
    policy.fit_bytes = LARGE;
    CHECK(!fit_is_alone(heap_own()));
    fit_epoch(100 * ++epochs);
    CHECK(heap_events.refilled == NULL);
    grow(bad, 4);
    CHECK(opened_sizes(NULL) == 0);
    CHECK(fit_is_alone(heap_own()));
    shrink(0);
    grow(bad, 4);
    CHECK(opened_sizes(NULL) >= 3);
    shrink(0);
    hak_malloc_trim(0);
    CHECK(limit_held() < LARGE && fit_is_alone(heap_own()));
    policy.fit_bytes = SIZE_MAX;
    CHECK(!fit_is_alone(heap_own()));
}

static void what_the_user_has_said_holds(void)
{
    learn(LEARN_OFF);
    policy.fit_bytes = LARGE;
    grow(bad, 4);
    CHECK(!fit_is_alone(heap_own()));
    fit_epoch(100 * ++epochs);
    CHECK(heap_events.refilled == NULL && classes_defined == 0);
}

/* A class that comes late, to a program that goes on freeing and allocating: what is held does not grow for it. */
static void what_does_not_grow_takes_no_more(void)
{
    learn(LEARN_OFF);
    size_t before = grow(bad, 4);
    uint64_t seed = 4;
    policy.learn = LEARN_ON;
    fit_follow_policy();
    for (int epoch = 0; epoch < 100; epoch++) {
        for (int i = 0; i < PER_EPOCH; i++) {
            void **block = &blocks[random_below(&seed, BLOCKS)];
            hak_free(*block);
            *block = hak_malloc(bad[random_below(&seed, 4)]);
        }
        fit_epoch(100 * ++epochs);
        CHECK(limit_held() * 100 <= before * 104);
    }
    CHECK(decisions_of(DECIDED_CLASS_OPENED, true) >= 3);
}

static void what_no_longer_pays_is_closed(void)
{
    size_t size = 0;
    learn(LEARN_ON);
    grow(bad, 1);
    CHECK(opened_sizes(&size) == 1 && size == 1040);
    shrink(10);
    for (int i = 0; i < 12; i++)
        fit_epoch(100 * ++epochs);
    CHECK(opened_sizes(NULL) == 1); /* it may come back */
    for (int i = 0; i < 12; i++)
        fit_epoch(100 * ++epochs);
    CHECK(opened_sizes(NULL) == 0);
    CHECK(decisions_of(DECIDED_CLASS_CLOSED, true) == 1);
    CHECK(size_class_of(1040) == size_class_fixed(1040));
}

/* It costs nothing, and the program may come to it again. */
static void an_empty_class_stays(void)
{
    learn(LEARN_ON);
    grow(bad, 1);
    shrink(0);
    hak_malloc_trim(0);
    for (int i = 0; i < 100; i++)
        fit_epoch(100 * ++epochs);
    CHECK(opened_sizes(NULL) == 1);
}

enum { IDS = SIZE_CLASSES - SIZE_CLASSES_FIXED, FIRST_BAD = 16, FILLING = 120000 };

static void *filling[FILLING];
static size_t filled;

static void fill(size_t size, size_t bytes)
{
    for (size_t sum = 0; sum < bytes && filled < FILLING; sum += size)
        filling[filled++] = hak_malloc(size);
}

static void empty(void)
{
    while (filled > 0)
        hak_free(filling[--filled]);
}

/* Sizes that fall badly; returns how many. */
static size_t bad_sizes(size_t sizes[SIZE_CLASSES])
{
    size_t count = 0;
    for (unsigned fixed = FIRST_BAD; fixed < SIZE_CLASSES_FIXED - 1; fixed++) {
        size_t size = size_classes[fixed].size + 16;
        if (size != 4096 + 16 && size != 4608 + 16) /* the next class is near, and less is lost than elsewhere */
            sizes[count++] = size;
    }
    return count;
}

static void more_sizes_than_ids(void)
{
    size_t sizes[SIZE_CLASSES];
    learn(LEARN_ON);
    size_t count = bad_sizes(sizes);
    for (int epoch = 0; epoch < 25; epoch++) {
        for (size_t i = 0; i < count; i++)
            fill(sizes[i], sizes[i] > 4096 ? 1 << 19 : 1 << 18); /* slabs of few blocks have to save more */
        fit_epoch(100 * ++epochs);
    }
    CHECK(filled < FILLING && count > IDS && opened_sizes(NULL) == IDS);
    CHECK(decisions_of(DECIDED_CLASS_CLOSED, true) == 0);
    /* What is wanted twice as much as the least of them takes its place. */
    empty();
    hak_malloc_trim(0);
    static const size_t other[] = {656 + 16};
    grow(other, 1);
    CHECK(size_class_bytes(size_class_of(other[0])) == other[0]);
    CHECK(opened_sizes(NULL) == IDS);
    CHECK(decisions_of(DECIDED_CLASS_CLOSED, true) == 1);
}

/* Where the blocks of a closed class live for ever, closing it makes no room: others are closed, but not all. */
static void blocks_that_stay_do_not_stop_it(void)
{
    static const size_t other[] = {656 + 16};
    size_t sizes[SIZE_CLASSES];
    learn(LEARN_ON);
    size_t count = bad_sizes(sizes);
    size_t presets = 0;
    for (size_t i = 0; i < count && presets < IDS; i++) {
        if (size_class_fixed(sizes[i]) == size_class_fixed(other[0]))
            continue;
        presets += fit_preset(sizes[i], 5) ? 1 : 0;
        fill(sizes[i], 1 << 20);
    }
    CHECK(presets == IDS && filled < FILLING);
    grow(other, 1);
    for (int i = 0; i < 600; i++)
        fit_epoch(100 * ++epochs);
    CHECK(decisions_of(DECIDED_CLASS_CLOSED, true) == 4);
    CHECK(opened_sizes(NULL) == IDS - 4);
}

/* Two want it, and neither saves so much that another should go. */
static void the_last_id_is_not_taken_back_at_once(void)
{
    size_t sizes[SIZE_CLASSES + 1];
    learn(LEARN_ON);
    size_t count = bad_sizes(sizes);
    const size_t last[] = {sizes[2], sizes[4]};
    size_t presets = 0;
    sizes[count++] = 448 + 16;
    for (size_t i = 0; i < count && presets < IDS - 1; i++) {
        if (sizes[i] == last[0] || sizes[i] == last[1] || sizes[i] == 28672 + 16) /* four to a slab, as of the next class: it saves nothing */
            continue;
        CHECK(fit_preset(sizes[i], 5));
        fill(sizes[i], 1 << 20);
        presets++;
    }
    fit_epoch(100 * ++epochs);
    CHECK(presets == IDS - 1 && opened_sizes(NULL) == IDS - 1);
    fill(last[0], 1 << 19);
    fill(last[1], 1 << 19);
    for (int i = 0; i < 5; i++)
        fit_epoch(100 * ++epochs);
    CHECK(filled < FILLING && opened_sizes(NULL) == IDS);
    CHECK(decisions_of(DECIDED_CLASS_OPENED, true) == 1 && decisions_of(DECIDED_CLASS_CLOSED, true) == 0);
}

static void presets_are_open_from_the_start(void)
{
    size_t size = 0;
    learn(LEARN_ON);
    CHECK(fit_preset(1040, 5) && !fit_preset(1040, 5) && !fit_preset(1280, 5) && !fit_preset(7, 5));
    CHECK(opened_sizes(&size) == 1 && size == 1040 && last_evidence == 5);
    void *p = hak_malloc(1040);
    CHECK(hak_malloc_usable_size(p) == 1040);
    grow(bad, 1);
    CHECK(opened_sizes(&size) == 1 && size == 1040 && last_evidence > 5);
    CHECK(!fit_has_opened()); /* not by itself */
}

static void a_child_goes_on(void)
{
    size_t size = 0;
    learn(LEARN_ON);
    grow(bad, 1);
    CHECK(opened_sizes(NULL) == 1);
    pid_t child = fork();
    if (child == 0) {
        static const size_t others[] = {5136};
        fit_forked();
        bool had_opened = fit_has_opened();
        shrink(0);
        grow(others, 1);
        _exit(opened_sizes(&size) > 0 && size == 5136 && !had_opened && fit_has_opened() ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(opened_sizes(NULL) == 1 && fit_has_opened());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(sizes_that_fall_badly),
        UNIT_TEST(sizes_that_fall_well),
        UNIT_TEST(observe_mode_changes_nothing),
        UNIT_TEST(observe_mode_closes_nothing),
        UNIT_TEST(off_is_off),
        UNIT_TEST(who_has_held_much_needs_no_learner),
        UNIT_TEST(what_the_user_has_said_holds),
        UNIT_TEST(what_does_not_grow_takes_no_more),
        UNIT_TEST(what_no_longer_pays_is_closed),
        UNIT_TEST(an_empty_class_stays),
        UNIT_TEST(more_sizes_than_ids),
        UNIT_TEST(blocks_that_stay_do_not_stop_it),
        UNIT_TEST(the_last_id_is_not_taken_back_at_once),
        UNIT_TEST(presets_are_open_from_the_start),
        UNIT_TEST(a_child_goes_on),
    };
    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
