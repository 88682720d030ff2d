/*
 * Random operations on several threads while the system refuses some calls at random, all of a kind, or memory
 * beyond a bound: each request is served, or gets NULL and ENOMEM; every live block keeps its content; and once
 * the system obeys again, everything is served and nothing is lost.
 */
#include "unit.h"

#include <stdio.h>

#include "api/stats.h"
#include "base/compiler.h"
#include "child.h"
#include "fake_os.h"
#include "hakmem.h"
#include "load.h"
#include "scale.h"

/* Under ThreadSanitizer and an emulator, which are slow, a part of the plans will do. */
enum { ROUNDS = 6, FEWER = HAK_TSAN || sizeof HAK_TEST_EMULATOR > 1 };

static struct load loads[LOAD_THREADS];

struct plan {
    unsigned calls;
    size_t one_in;       /* 0: the calls from number `from` on */
    size_t from;
    size_t usable_bytes; /* bound, in rounds with refusals; SIZE_MAX: none */
};

static const struct plan *plan;

static void begin_refusing(size_t round)
{
    if (plan->one_in != 0)
        fake_os_refuse_some(plan->calls, plan->one_in, round * 1000003);
    else
        fake_os_refuse(plan->calls, plan->from, FAKE_EVERY);
    fake_os_set_commit_most(plan->usable_bytes);
}

static void end_refusing(void)
{
    fake_os_obey();
    fake_os_set_commit_most(SIZE_MAX);
}

/* Refusals in the even rounds. Only what has an answer to refusals may go on while they last: in between, all
 * threads wait for each other. */
static void play(struct load *load, bool leads)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        if (leads && round % 2 == 0)
            begin_refusing(round);
        load_meet();
        size_t before = load->refused;
        load_run(load, scaled_work(4000), 48 << 20);
        if (leads && round % 2 == 0)
            hak_malloc_trim(0);
        load_meet();
        load_check(load);
        if (leads)
            end_refusing();
        if (round % 2 == 1)
            CHECK(load->refused == before);
        load_meet();
    }
}

static void scenario(uintptr_t chosen)
{
    plan = (const struct plan *)chosen;
    load_play(loads, play);
    hak_malloc_trim(0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_blocks == 0 && stats.large_blocks == 0 && stats.bigcache_bytes == 0);
    for (size_t i = 0; i < LOAD_THREADS; i++) {
        loads[0].refused = 0;
        load_run(&loads[0], 5000, 48 << 20);
        CHECK(loads[0].refused == 0);
    }
    load_drain(&loads[0]);
}

static void run(const struct plan *chosen)
{
    struct child child = child_run(scenario, (uintptr_t)chosen);
    if (child.status != 0 || child.output[0] != '\0')
        fprintf(stderr, "calls 0x%x, one in %zu, from %zu, %zu bytes usable: status 0x%x\n%s", chosen->calls,
                chosen->one_in, chosen->from, chosen->usable_bytes, (unsigned)child.status, child.output);
    CHECK(child.status == 0 && child.output[0] == '\0');
}

static void some_of_all_calls(void)
{
    for (size_t one_in = 2; one_in <= 50; one_in *= FEWER ? 100 : 5)
        run(&(struct plan){.calls = FAKE_ALL, .one_in = one_in, .usable_bytes = SIZE_MAX});
}

static void half_the_calls_of_a_kind(void)
{
    for (unsigned kind = 1; kind < FAKE_ALL; kind <<= FEWER ? 4 : 1)
        run(&(struct plan){.calls = kind, .one_in = 2, .usable_bytes = SIZE_MAX});
}

static void all_calls_from_some_on(void)
{
    for (size_t from = 1; from <= 1000; from *= FEWER ? 1000 : 10)
        run(&(struct plan){.calls = FAKE_ALL, .from = from, .usable_bytes = SIZE_MAX});
}

static void memory_is_counted(void)
{
    for (size_t mib = 0; mib <= 64; mib += FEWER ? 64 : 16)
        run(&(struct plan){.from = 1, .usable_bytes = mib << 20});
}

/* The plans do refuse requests: else the checks above prove nothing. */
static void plan_refuses(uintptr_t unused)
{
    (void)unused;
    fake_os_set_commit_most(16 << 20);
    loads[0].random = 1;
    load_run(&loads[0], 40000, 256 << 20);
    CHECK(loads[0].refused > 0);
    load_check(&loads[0]);
}

static void requests_are_refused(void)
{
    struct child child = child_run(plan_refuses, 0);
    CHECK(child.status == 0 && child.output[0] == '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(requests_are_refused),
        UNIT_TEST(some_of_all_calls),
        UNIT_TEST(half_the_calls_of_a_kind),
        UNIT_TEST(all_calls_from_some_on),
        UNIT_TEST(memory_is_counted),
    };
    return cmocka_run_group_tests_name("refusal_model", tests, NULL, NULL);
}
