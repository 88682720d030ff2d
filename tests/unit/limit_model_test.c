/*
 * Random operations on several threads at the limits: each request is served, or gets NULL and ENOMEM; every live block
 * keeps its content; the hard limit holds; and once the limits are lifted everything is served and nothing is lost.
 */
#include "unit.h"

#include <stdatomic.h>

#include "api/stats.h"
#include "arena/meta.h"
#include "hakmem.h"
#include "load.h"
#include "scale.h"
#include "span/limit.h"
#include "span/span.h"
#include "spans.h"

enum { ROUNDS = 8 };

/* Metadata is granted always, in chunks of at most so much. */
#define META_CHUNK ((size_t)4 << 20)

static struct load loads[LOAD_THREADS];
static size_t soft, hard; /* bytes, in the even rounds */
static atomic_size_t calls;
static atomic_int callers;

static void drop_nothing(size_t held, size_t limit, void *data)
{
    (void)data;
    CHECK(atomic_fetch_add(&callers, 1) == 0);
    CHECK(held > limit);
    hak_free(hak_malloc(100000));
    atomic_fetch_add(&calls, 1);
    atomic_fetch_sub(&callers, 1);
}

static void play(struct load *load, bool leads)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        bool limited = round % 2 == 0;
        if (leads)
            CHECK(hak_set_limit(limited ? soft : 0, limited ? hard : 0) == 0);
        load_meet();
        size_t before = load->refused;
        for (int part = 0; part < 10; part++) {
            load_run(load, scaled_work(800), 12 << 20);
            if (leads && limited && round > 0)
                (void)hak_malloc_trim(0);
            CHECK(round > 0 || hard == 0 || limit_held() <= hard + META_CHUNK);
        }
        load_meet();
        load_check(load);
        CHECK(limited || load->refused == before);
        load_meet();
    }
}

static void check_nothing_is_lost(void)
{
    for (int i = 0; i < 4; i++)
        hak_malloc_trim(0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_blocks == 0 && stats.large_blocks == 0 && stats.bigcache_bytes == 0);
    CHECK(stats.cached_bytes == 0);
    CHECK(span_used_bytes() == 0);
    CHECK(limit_held() == meta_committed() + span_dirty_bytes());
}

static void run(void)
{
    hak_set_limit_callback(drop_nothing, NULL);
    load_play(loads, play);
    size_t refused = 0;
    for (size_t i = 0; i < LOAD_THREADS; i++)
        refused += loads[i].refused;
    CHECK((refused > 0) == (hard != 0));
    check_nothing_is_lost();
}

static void soft_limit_refuses_nothing(void)
{
    soft = 8 << 20;
    run();
    CHECK(calls > 0);
}

static void hard_limit_holds(void)
{
    hard = 16 << 20;
    run();
    CHECK(calls == 0);
}

static void both(void)
{
    soft = 8 << 20;
    hard = 16 << 20;
    run();
    CHECK(calls > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(soft_limit_refuses_nothing),
        UNIT_TEST(hard_limit_holds),
        UNIT_TEST(both),
    };
    return cmocka_run_group_tests_name("limit_model", tests, NULL, NULL);
}
