/* learn/sites.h and large/site.h, by way of hak_alloc_at and hak_free_at, and of stacks. */
#include "unit.h"

#include <string.h>

#include "arena/arena.h"
#include "config/policy.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/events.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "learn/decisions.h"
#include "learn/sites.h"
#include "random.h"
#include "scale.h"
#include "worker.h"

enum { HERE = 1001, THERE = 2002, START_MS = 1000000, EPOCH_NS = 1000 * 1000 * 1000 };

static const struct large_site *site(uintptr_t word)
{
    uint32_t number = sites_number(word);
    CHECK(number != SITE_NONE);
    return &large_sites[number];
}

static void start(void)
{
    fake_clock_set(START_MS);
    heap_events.site = sites_of_request;
    (void)heap_own();
    /* No heartbeat comes between two lines of a test. */
    policy.heartbeat_bytes = GIB * 64;
}

static void *take(size_t size, uintptr_t word)
{
    void *p = hak_alloc_at(size, word);
    CHECK(p != NULL);
    return p;
}

static void words_have_numbers(void)
{
    start();
    CHECK(sites_number(0) == SITE_NONE);
    bool seen[SITES] = {0};
    uint32_t known = 0;
    for (uintptr_t word = 1; word <= 4 * SITES; word++) {
        uint32_t number = sites_number(word);
        CHECK(number < SITES && number == sites_number(word));
        CHECK(number == SITE_NONE || (!seen[number] && large_sites[number].word == word));
        known += number != SITE_NONE;
        seen[number] = true;
    }
    CHECK(known == SITES - 1);
    hak_free_at(take(100000, 5 * SITES), 100000, 5 * SITES); /* who has none is served as others are */
}

static void small_blocks_have_no_site(void)
{
    start();
    for (size_t size = 1; size <= SMALL_MAX; size += 1000)
        hak_free_at(take(size, HERE), size, HERE);
    CHECK(large_sites == NULL);
    hak_free_at(NULL, 0, HERE);
    hak_free_at(NULL, 1000000, HERE);
}

static void a_site_is_served_first_by_its_own(void)
{
    start();
    char *mine = take(MIB, HERE);
    char *other = take(MIB, THERE);
    hak_free_at(mine, MIB, 0);
    hak_free_at(other, MIB, 0);
    CHECK(take(MIB, HERE) == mine);
    CHECK(take(MIB, HERE) == other); /* rather than none */
    hak_free_at(mine, MIB, THERE);   /* for whom it is next */
    hak_free_at(other, MIB, HERE);
    CHECK(take(MIB, THERE) == mine);
    hak_free(mine);
    CHECK(hak_malloc(MIB) == mine); /* the latest; to a request without a site they are all the same */
}

static void free_elsewhere(void *p)
{
    fake_clock_set(START_MS + 5);
    hak_free(p);
}

static void counts_what_a_site_does(void)
{
    start();
    char *first = take(100000, HERE);
    char *second = take(300000, HERE);
    char *third = take(200000, HERE);
    struct worker worker;
    worker_start(&worker);
    worker_run(&worker, free_elsewhere, first);
    worker_stop(&worker);
    hak_free_at(second, 300000, THERE); /* what it has lived belongs to the one that had requested it */
    fake_clock_set(START_MS + 3000);
    hak_free(third);
    const struct large_site *here = site(HERE);
    CHECK(here->requests == 3 && here->bytes == 600000 && here->least == 100000 && here->most == 300000);
    CHECK(here->frees == 3 && here->remote_frees == 1);
    CHECK(here->lifetimes[site_time(5)] == 2 && here->lifetimes[site_time(3000)] == 1);
    CHECK(site(THERE)->frees == 0);
}

/* Takes and frees `count` times, and lets time pass after each free. */
static void use(uintptr_t word, int count, uint64_t pause_ms)
{
    static uint64_t now_ms = START_MS;
    for (int i = 0; i < count; i++) {
        hak_free_at(take(MIB, word), MIB, word);
        fake_clock_set(now_ms += pause_ms);
        large_evict_old(now_ms);
    }
}

static void without_the_learner_there_are_no_trials(void)
{
    start();
    use(HERE, 20, 10);
    struct large_site none = {0};
    CHECK(memcmp(site(HERE)->waits, none.waits, sizeof none.waits) == 0);
    sites_epoch(1, EPOCH_NS, true);
    CHECK(decisions_copy(&(struct decision){0}, 1) == 0);
}

static void trials_are_some_frees(void)
{
    start();
    policy.learn = LEARN_ON;
    use(HERE, 16 * 4 + 2, 10);
    CHECK(site(HERE)->waits[site_time(10)] == 8 + 4); /* the first eight; then one in sixteen */
    policy.learn_parts = LEARN_ALL & ~LEARN_SITES;
    use(HERE, 64, 10);
    CHECK(site(HERE)->waits[site_time(10)] == 8 + 4);
}

static size_t last_decision(struct decision *last)
{
    static struct decision all[DECISIONS_KEPT];
    size_t count = decisions_copy(all, DECISIONS_KEPT);
    if (count > 0)
        *last = all[count - 1];
    return count;
}

static void a_site_that_comes_back_too_late_is_not_kept(void)
{
    start();
    policy.learn = LEARN_ON;
    use(HERE, 9, 20000);
    CHECK(site(HERE)->unwanted >= 8);
    struct decision last;
    sites_epoch(76, EPOCH_NS, false); /* of a policy that is only tried */
    CHECK(last_decision(&last) == 0);
    sites_epoch(77, EPOCH_NS, true);
    CHECK(last_decision(&last) == 1);
    CHECK(last.kind == DECIDED_SITE && last.ms == 77 && last.subject == HERE && last.before == 1000);
    CHECK(last.after == 0 && last.evidence >= 8 && last.gain > 0 && last.applied);
    char *p = take(MIB, HERE);
    hak_free(p);
    CHECK(arena_tag(p) == TAG_LARGE_GONE);
    sites_epoch(78, EPOCH_NS, true);
    CHECK(last_decision(&last) == 1);
    /* Trials go on, and say when the program has changed. */
    use(HERE, 16 * 40, 5);
    sites_epoch(79, EPOCH_NS, true);
    CHECK(last_decision(&last) == 2 && last.before == 0 && last.after == 1000);
    p = take(MIB, HERE);
    hak_free(p);
    CHECK(arena_tag(p) == TAG_LARGE_KEPT);
}

/* What was learned elsewhere is in force in a process that learns nothing. */
static void presets_need_no_learner(void)
{
    start();
    sites_preset(HERE, PATIENCE_NONE);
    char *p = take(MIB, HERE);
    hak_free(p);
    CHECK(arena_tag(p) == TAG_LARGE_GONE);
    CHECK(large_sites_special == 1);
    sites_reset();
    CHECK(large_sites_special == 0);
    p = take(MIB, HERE);
    hak_free(p);
    CHECK(arena_tag(p) == TAG_LARGE_KEPT);
}

static void a_site_that_comes_back_a_little_late_is_kept_longer(void)
{
    start();
    policy.learn = LEARN_ON;
    use(HERE, 10, 1200);
    sites_epoch(1, EPOCH_NS, true);
    CHECK(site(HERE)->patience == 1);
    /* Of those that are no trials, too: after 1200 ms its block is there. */
    char *p = take(MIB, HERE);
    hak_free(p);
    fake_clock_set(5000000);
    hak_free(take(MIB, HERE));
    large_evict_old(5000000 + 1200);
    CHECK(arena_tag(p) == TAG_LARGE_KEPT);
    large_evict_old(5000000 + 2001);
    CHECK(arena_tag(p) == TAG_LARGE_GONE);
}

static void leases_are_doublings_of_the_age(void)
{
    start();
    policy.learn = LEARN_ON;
    for (unsigned patience = 0; patience <= PATIENCE_MOST; patience++) {
        fake_clock_set(START_MS);
        sites_preset(HERE, patience);
        for (int i = 0; i < 9; i++)
            hak_free(take(MIB, HERE)); /* the ninth is no trial */
        large_evict_old(START_MS + (1000u << patience));
        CHECK(bigcache_bytes() == MIB);
        large_evict_old(START_MS + (1000u << patience) + 1);
        CHECK(bigcache_bytes() == 0);
        hak_free(take(MIB, HERE));
        large_evict_before(UINT64_MAX);
    }
    sites_preset(HERE, PATIENCE_NONE + 1);
    CHECK(site(HERE)->patience == PATIENCE_MOST);
}

static void an_observer_changes_nothing(void)
{
    start();
    policy.learn = LEARN_OBSERVE;
    use(HERE, 30 * 16, 1200);
    sites_epoch(1, EPOCH_NS, true);
    struct decision last;
    CHECK(last_decision(&last) == 1 && last.after == 0 && !last.applied);
    char *p = take(MIB, HERE);
    hak_free(p);
    CHECK(arena_tag(p) == TAG_LARGE_KEPT);
    sites_epoch(2, EPOCH_NS, true);
    CHECK(last_decision(&last) == 1); /* said once */
}

/* ---- By stacks. */

static NOINLINE char *from_one_place(size_t size)
{
    char *p = hak_malloc(size);
    CHECK(p != NULL);
    return p;
}

static NOINLINE char *from_another_place(size_t size)
{
    char *p = hak_calloc(1, size);
    CHECK(p != NULL);
    return p;
}

static uint32_t site_of_block(const void *p)
{
    return large_find(p)->site;
}

static void count_sites(uint32_t number, const struct large_site *each, void *data)
{
    CHECK(&large_sites[number] == each && each->word != 0);
    (*(int *)data)++;
}

static void places_are_known_by_their_stacks(void)
{
    start();
    hak_free(from_one_place(MIB));
    CHECK(large_sites == NULL); /* nobody looks while the learner is off */
    policy.learn = LEARN_ON;
    uint32_t one = SITE_NONE;
    uint32_t another = SITE_NONE;
    for (int i = 0; i < 64; i++) {
        char *p = from_one_place(MIB);
        char *q = from_another_place(3 * MIB);
        if (site_of_block(p) != SITE_NONE) {
            CHECK(one == SITE_NONE || one == site_of_block(p));
            one = site_of_block(p);
        }
        if (site_of_block(q) != SITE_NONE) {
            CHECK(another == SITE_NONE || another == site_of_block(q));
            another = site_of_block(q);
        }
        hak_free(p);
        hak_free(q);
        if (i % 16 == 7)
            hak_free(hak_malloc(2 * MIB)); /* so that turns come to both */
    }
    CHECK(one != SITE_NONE && another != SITE_NONE && one != another);
    char *large = from_one_place(5 * MIB);
    CHECK(site_of_block(large) != SITE_NONE); /* of these each is looked at */
    hak_free(large);
    int count = 0;
    sites_each(count_sites, &count);
    CHECK(count >= 3 && count <= 4);
    /* As soon as one of them is kept in its own way, each request says which it is. */
    sites_preset(large_sites[one].word, PATIENCE_NONE);
    for (int i = 0; i < 32; i++) {
        char *p = from_one_place(MIB);
        CHECK(site_of_block(p) == one);
        hak_free(p);
    }
}

/* What is large for its alignment alone. */
static void no_size_is_too_small_to_have_a_shape(void)
{
    start();
    policy.learn = LEARN_ON;
    sites_preset(HERE, PATIENCE_NONE); /* so that each request is to say where it comes from */
    for (size_t size = 0; size <= 16; size++) {
        void *p = hak_aligned_alloc(MIB, size);
        CHECK(p != NULL);
        hak_free(p);
    }
}

/* ---- Threads. */

enum { THREADS = 4, ROUNDS = 3000, HANDED = 8 };

static void *handed[HANDED];

/* Takes for one of two sites, and frees what another thread has taken. */
static void take_and_hand_over(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    for (size_t i = 0; i < scaled_work(ROUNDS); i++) {
        char *p = take(40000 + random_below(&state, 100000), random_below(&state, 2) == 0 ? HERE : THERE);
        p[0] = p[30000] = 1;
        char *old = __atomic_exchange_n(&handed[random_below(&state, HANDED)], p, __ATOMIC_ACQ_REL);
        if (old != NULL && random_below(&state, 2) == 0)
            hak_free_at(old, 40000, THERE);
        else
            hak_free(old);
    }
}

static void threads_share_sites(void)
{
    start();
    policy.learn = LEARN_ON;
    struct worker workers[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        worker_start(&workers[i]);
        worker_begin(&workers[i], take_and_hand_over, (void *)(i + 1));
    }
    for (int i = 0; i < 100; i++)
        sites_epoch((uint64_t)i, EPOCH_NS, true);
    for (int i = 0; i < THREADS; i++) {
        worker_wait(&workers[i]);
        worker_stop(&workers[i]);
    }
    for (int i = 0; i < HANDED; i++)
        hak_free(handed[i]);
    const struct large_site *here = site(HERE);
    const struct large_site *there = site(THERE);
    CHECK(here->requests + there->requests == THREADS * scaled_work(ROUNDS));
    CHECK(here->frees == here->requests && there->frees == there->requests);
    CHECK(here->remote_frees > 0 && here->least >= 40000 && here->most < 140000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(words_have_numbers),
        UNIT_TEST(small_blocks_have_no_site),
        UNIT_TEST(a_site_is_served_first_by_its_own),
        UNIT_TEST(counts_what_a_site_does),
        UNIT_TEST(without_the_learner_there_are_no_trials),
        UNIT_TEST(trials_are_some_frees),
        UNIT_TEST(a_site_that_comes_back_too_late_is_not_kept),
        UNIT_TEST(presets_need_no_learner),
        UNIT_TEST(a_site_that_comes_back_a_little_late_is_kept_longer),
        UNIT_TEST(leases_are_doublings_of_the_age),
        UNIT_TEST(an_observer_changes_nothing),
        UNIT_TEST(places_are_known_by_their_stacks),
        UNIT_TEST(no_size_is_too_small_to_have_a_shape),
        UNIT_TEST(threads_share_sites),
    };
    return cmocka_run_group_tests_name("sites", tests, NULL, NULL);
}
