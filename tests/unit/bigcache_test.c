/* large/bigcache.h, by way of large/large.h: what it keeps, whom it serves, what it gives up. */
#include "unit.h"

#include "arena/arena.h"
#include "base/shard.h"
#include "config/policy.h"
#include "fake_os.h"
#include "large/bigcache.h"
#include "larges.h"
#include "os/os.h"
#include "process.h"
#include "span/huge.h"
#include "span/superslab.h"
#include "worker.h"

static void serves_sizes_within_a_quarter(void)
{
    large_init();
    static const struct {
        size_t cached, wanted;
        bool fits;
    } cases[] = {{10, 8, true}, {10, 10, true}, {10, 7, false}, {10, 11, false}, {40, 32, true}, {40, 30, false},
                 {160, 128, true}, {160, 120, false}, {160, 176, false}, {5, 4, true}, {4, 3, false}};
    size_t factor = units_per_page();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t cached = cases[i].cached * factor;
        size_t wanted = cases[i].wanted * factor;
        char *at = large_take(cached * UNIT_SIZE);
        large_give(at);
        CHECK(bigcache_bytes() == cached * UNIT_SIZE);
        char *other = large_take(wanted * UNIT_SIZE);
        CHECK(large_find(other)->units == (cases[i].fits ? cached : wanted));
        CHECK(bigcache_bytes() == 0); /* served, or made room */
        large_give(other);
        large_evict_before(UINT64_MAX);
    }
}

/* A request that no kept block serves takes as much of the oldest as it needs, and leaves the rest. */
static void makes_room_for_what_it_cannot_serve(void)
{
    large_init();
    char *kept[8];
    for (int i = 0; i < 8; i++)
        kept[i] = large_take(MIB);
    for (int i = 0; i < 8; i++)
        large_give(kept[i]);
    size_t used = span_used_bytes();
    char *at = large_take(3 * MIB);
    CHECK(bigcache_bytes() == 5 * MIB);
    CHECK(span_used_bytes() == used);
    CHECK(large_take(MIB) == kept[7]); /* the latest is still there */
    large_give(at);
    large_evict_before(UINT64_MAX);
}

static void gives_the_latest_first(void)
{
    large_init();
    char *first = large_take(MIB);
    char *second = large_take(MIB);
    large_give(first);
    large_give(second);
    bool zero = true;
    CHECK(large_alloc(MIB, 1, &zero) == second);
    CHECK(!zero);
    CHECK(large_take(MIB) == first);
}

/* The latest of all sizes is kept apart from the others; nothing depends on it but how long it takes. */
static void finds_the_latest_and_the_others(void)
{
    large_init();
    size_t step = units_per_page() * UNIT_SIZE;
    char *exact = large_take(40 * step);
    char *longer = large_take(44 * step);
    char *other = large_take(100 * step);
    large_give(exact);
    large_give(other);
    large_give(longer);
    CHECK(bigcache_bytes() == 184 * step);
    CHECK(large_take(40 * step) == exact); /* not the latest, which is longer */
    CHECK(large_take(40 * step) == longer);
    large_give(longer);
    large_give(exact);
    CHECK(large_take(40 * step) == exact);
    CHECK(large_take(36 * step) == longer);
    CHECK(large_take(100 * step) == other);
    CHECK(bigcache_bytes() == 0);
}

/* Two threads may come in another order than that in which they have read the clock. */
static void forgets_whatever_the_clock_says(void)
{
    large_init();
    char *held[4];
    for (int i = 0; i < 4; i++)
        held[i] = large_take((i < 2 ? 1 : 4) * MIB);
    static const uint64_t times[] = {2000, 1000, 1500, 500};
    for (int i = 0; i < 4; i++) {
        fake_clock_set(times[i]);
        large_give(held[i]);
    }
    CHECK(bigcache_bytes() == 10 * MIB);
    large_evict_before(501);
    CHECK(arena_tag(held[0]) == TAG_LARGE_KEPT);
    large_evict_before(2001);
    CHECK(bigcache_bytes() == 0);
    fake_clock_set(100);
    large_give(large_take(MIB));
    large_evict_before(101);
    CHECK(bigcache_bytes() == 0);
}

/* What nobody has written of a kept block, a request for zeros does not write either. */
static void is_cleared_where_it_was_written(void)
{
    large_init();
    char *at = large_take(8 * MIB);
    at[3 * MIB] = at[8 * MIB - 1] = 1;
    large_give(at);
    bool zero = true;
    CHECK(large_alloc(8 * MIB - 5000, 1, &zero) == at && !zero);
    large_clear(at, 8 * MIB - 5000);
    if (!process_is_emulated())
        CHECK(os_resident(at, 8 * MIB) == 2 * os_page_size());
    for (size_t i = 0; i < 8 * MIB - 5000; i += 8)
        CHECK(*(const uint64_t *)(const void *)(at + i) == 0);
}

static void keeps_its_budget(void)
{
    large_init();
    policy.bigcache_bytes = 4 * MIB;
    char *held[10];
    for (int i = 0; i < 10; i++)
        held[i] = large_take(MIB);
    char *huge = large_take(5 * MIB);
    for (int i = 0; i < 10; i++) {
        large_give(held[i]);
        CHECK(bigcache_bytes() == min_size((size_t)(i + 1) * MIB, 4 * MIB));
    }
    large_give(huge);
    CHECK(bigcache_bytes() == 4 * MIB);
    CHECK(arena_tag(huge) == TAG_LARGE_GONE);
    CHECK(arena_tag(held[5]) == TAG_LARGE_GONE);
    CHECK(arena_tag(held[6]) == TAG_LARGE_KEPT);
    policy.bigcache_bytes = 0;
    large_evict_before(0);
    CHECK(bigcache_bytes() == 0);
}

static void forgets_by_age(void)
{
    large_init();
    char *old = large_take(MIB);
    char *young = large_take(2 * MIB);
    fake_clock_set(1000);
    large_give(old);
    fake_clock_set(2000);
    large_give(young);
    large_evict_before(1000);
    CHECK(bigcache_bytes() == 3 * MIB);
    large_evict_before(1001);
    CHECK(bigcache_bytes() == 2 * MIB);
    large_evict_before(2000);
    CHECK(bigcache_bytes() == 2 * MIB);
    large_evict_before(2001);
    CHECK(bigcache_bytes() == 0);
}

/* Each size bin has an age of its own. */
static void forgets_by_age_of_size(void)
{
    large_init();
    fake_clock_set(1000);
    policy.bigcache_ms[size_bin(MIB)] = 500;
    policy.bigcache_ms[size_bin(4 * MIB)] = 5000;
    char *small = large_take(MIB);
    char *large = large_take(4 * MIB);
    large_give(large);
    fake_clock_set(1100);
    large_give(small);
    large_evict_old(1600);
    CHECK(bigcache_bytes() == 5 * MIB);
    large_evict_old(1601);
    CHECK(bigcache_bytes() == 4 * MIB);
    policy.bigcache_bytes = 4 * MIB; /* over its budget it gives up the oldest, whatever its size */
    fake_clock_set(1700);
    large_give(large_take(MIB));
    CHECK(bigcache_bytes() == MIB);
    large_evict_old(2201);
    CHECK(bigcache_bytes() == 0);
    large_give(large_take(4 * MIB));
    policy.bigcache_ms[size_bin(4 * MIB)] = 0; /* of what is kept, too */
    large_evict_old(1701);
    CHECK(bigcache_bytes() == 0);
}

/* Whoever is at a heartbeat gives some of many back, and the next goes on. */
static void forgets_many_by_parts(void)
{
    enum { MANY = 2500, BYTES = 40000 };
    static char *blocks[MANY];
    large_init();
    fake_clock_set(1000);
    policy.bigcache_bytes = SIZE_MAX;
    policy.bigcache_ms[size_bin(BYTES)] = 500;
    for (size_t i = 0; i < MANY; i++)
        blocks[i] = large_take(BYTES);
    for (size_t i = 0; i < MANY; i++)
        large_give(blocks[i]);
    size_t all = bigcache_bytes();
    large_evict_old(1501);
    size_t left = bigcache_bytes();
    CHECK(left > all / 2 && left < all);
    for (int looks = 0; looks < 5; looks++)
        large_evict_old(1501);
    CHECK(bigcache_bytes() == 0);
}

/* It is of its mapping alone, so that the kernel is asked when it is given back. */
static char *moved_block(void)
{
    char *at = corner(large_take(MIB), MIB);
    char *moved = large_resize(large_find(at), 3 * MIB);
    CHECK(moved != NULL && moved != at);
    return moved;
}

static size_t not_kept;     /* bytes in use that never were */
static size_t most_in_hand; /* neither kept nor given back */

static void note_in_hand(void)
{
    most_in_hand = max_size(most_in_hand, span_used_bytes() - bigcache_bytes() - not_kept);
}

/* What is nobody's when a process forks, its child loses. */
static void few_are_on_their_way_at_once(void)
{
    enum { MANY = 50, FEW = 8 };
    static char *blocks[MANY];
    large_init();
    fake_clock_set(1000);
    policy.bigcache_bytes = SIZE_MAX;
    for (size_t i = 0; i < MANY; i++)
        blocks[i] = moved_block();
    for (size_t i = 0; i < MANY; i++)
        large_give(blocks[i]);
    size_t all = bigcache_bytes();
    not_kept = span_used_bytes() - all;
    fake_os_before_refill(note_in_hand); /* for what the kernel has not renewed, and may have unmapped */
    fake_os_refuse(FAKE_RENEW | FAKE_HOLDS, 1, FAKE_EVERY);
    large_evict_old(1001 + bigcache_longest_ms());
    CHECK(fake_os_refused() == 2 * MANY && bigcache_bytes() == 0);
    CHECK(most_in_hand == all / MANY * FEW);
}

/* Their pages go back at once: what is taken next reads as zero. */
static void keeps_no_block_that_is_too_large(void)
{
    large_init();
    policy.kept_most_bytes = 2 * MIB;
    char *kept = large_take(2 * MIB);
    char *given = large_take(3 * MIB);
    given[0] = 1;
    superslab_of(given)->huge = true;
    large_give(kept);
    large_give(given);
    CHECK(bigcache_bytes() == 2 * MIB);
    CHECK(arena_tag(given) == TAG_LARGE_GONE);
    CHECK(fake_os_made(FAKE_PURGE) == 1);
    CHECK(span_dirty_bytes() == 0 && !huge_is_at(given));
    fake_os_refuse(FAKE_PURGE, 1, FAKE_EVERY);
    large_give(large_take(3 * MIB));
    fake_os_obey();
    CHECK(span_dirty_bytes() >= 3 * MIB);
}

/* The cache is given up before a request fails. */
static void is_given_up_for_memory(void)
{
    large_init();
    large_give(large_take(8 * MIB));
    CHECK(bigcache_bytes() == 8 * MIB);
    fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    char *held[256];
    int count = 0;
    bool zero;
    while (count < 256 && (held[count] = large_alloc(MIB, 1, &zero)) != NULL)
        count++;
    CHECK(count >= 7 && count < 256);
    CHECK(bigcache_bytes() == 0);
    fake_os_obey();
    CHECK(large_take(MIB) != NULL);
}

enum { FREERS = 20 }; /* more than there are shards */

static void give(void *at)
{
    large_give(at);
}

/* Each thread keeps what it frees by itself: the budget, the age and who is served are of them all. */
static void is_one_cache_for_all_threads(void)
{
    large_init();
    struct worker workers[FREERS];
    char *held[FREERS];
    for (int i = 0; i < FREERS; i++) {
        worker_start(&workers[i]);
        held[i] = large_take(MIB);
    }
    for (int i = 0; i < FREERS; i++) {
        fake_clock_set((uint64_t)(i + 1) * 10);
        worker_run(&workers[i], give, held[i]);
    }
    CHECK(bigcache_bytes() == FREERS * MIB);
    policy.bigcache_bytes = (FREERS - 3) * MIB;
    large_evict_before(0);
    for (int i = 0; i < FREERS; i++)
        CHECK(arena_tag(held[i]) == (i < 3 ? TAG_LARGE_GONE : TAG_LARGE_KEPT));
    large_evict_before(61);
    CHECK(arena_tag(held[5]) == TAG_LARGE_GONE && arena_tag(held[6]) == TAG_LARGE_KEPT);
    size_t used = span_used_bytes();
    for (int i = 6; i < FREERS; i++)
        CHECK(arena_tag(large_take(MIB)) == TAG_LARGE);
    CHECK(span_used_bytes() == used && bigcache_bytes() == 0);
    size_t served = 0;
    for (int i = 0; i < SHARDS; i++)
        served += bigcache_shards[i].served;
    CHECK(served == FREERS - 6);
    for (int i = 0; i < FREERS; i++)
        worker_stop(&workers[i]);
}

static void tell_shard(void *shard)
{
    *(unsigned *)shard = shard_of_thread();
}

/* A thread that keeps what it frees elsewhere than the caller does. */
static struct worker *start_other(struct worker *workers)
{
    for (int i = 0; i < FREERS; i++) {
        unsigned shard;
        worker_start(&workers[i]);
        worker_run(&workers[i], tell_shard, &shard);
        if (shard != shard_of_thread())
            return &workers[i];
    }
    CHECK(false); /* all threads have one shard */
    return NULL;
}

static void gives_a_thread_its_own_first(void)
{
    large_init();
    struct worker workers[FREERS];
    struct worker *other = start_other(workers);
    char *first = large_take(MIB);
    char *second = large_take(MIB);
    large_give(first);
    worker_run(other, give, second);
    CHECK(large_take(MIB) == first);
    CHECK(large_take(MIB) == second);
    for (struct worker *worker = workers; worker <= other; worker++)
        worker_stop(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(serves_sizes_within_a_quarter),
        UNIT_TEST(makes_room_for_what_it_cannot_serve),
        UNIT_TEST(gives_the_latest_first),
        UNIT_TEST(finds_the_latest_and_the_others),
        UNIT_TEST(forgets_whatever_the_clock_says),
        UNIT_TEST(is_cleared_where_it_was_written),
        UNIT_TEST(keeps_its_budget),
        UNIT_TEST(forgets_by_age),
        UNIT_TEST(forgets_by_age_of_size),
        UNIT_TEST(forgets_many_by_parts),
        UNIT_TEST(few_are_on_their_way_at_once),
        UNIT_TEST(keeps_no_block_that_is_too_large),
        UNIT_TEST(is_given_up_for_memory),
        UNIT_TEST(is_one_cache_for_all_threads),
        UNIT_TEST(gives_a_thread_its_own_first),
    };
    return cmocka_run_group_tests_name("bigcache", tests, NULL, NULL);
}
