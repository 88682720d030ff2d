/* heap/relief.h, api/limit.c: what is given back at a soft limit, and where that comes from. */
#include "unit.h"

#include <errno.h>

#include "api/stats.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heap/absent.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/relief.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "listener.h"
#include "nodes.h"
#include "span/limit.h"
#include "worker.h"

static void soft_limit_empties_the_bigcache(void)
{
    heap_own();
    void *block = hak_malloc(16 * MIB);
    nodes_free(nodes_take(NULL, 1000, 12 * MIB)); /* it has held more than it will: so nothing is given back for growth */
    (void)relief_give_back(NULL);
    hak_free(block);
    CHECK(bigcache_bytes() == 16 * MIB);
    CHECK(hak_set_limit(24 * MIB, 0) == 0);
    listener_set(listener_count);
    struct node *list = nodes_take(NULL, 1000, 6 * MIB);
    CHECK(bigcache_bytes() == 16 * MIB);
    list = nodes_take(list, 1000, 4 * MIB);
    CHECK(bigcache_bytes() == 0);
    CHECK(span_dirty_bytes() == 0);
    CHECK(limit_held() < 16 * MIB);
    CHECK(listener_calls == 0);
    nodes_free(list);
}

static void soft_limit_purges(void)
{
    heap_own();
    leave_fragments();
    size_t before = limit_held();
    CHECK(hak_set_limit(before + 8 * MIB, 0) == 0);
    listener_set(listener_count);
    CHECK(hak_malloc(12 * MIB) != NULL); /* too long for any of them */
    CHECK(span_dirty_bytes() == 0);
    CHECK(limit_held() < before + 8 * MIB);
    CHECK(listener_calls == 0);
}

/* Threads that end at once leave one heap warm; the others are cleaned, but mail comes to them later. */
static void soft_limit_empties_idle_heaps(void)
{
    enum { THREADS = 4, BLOCKS = 400 };
    static void *blocks[THREADS][BLOCKS];
    struct view *words[THREADS];
    struct heap *heap = heap_own();
    for (int i = 0; i < THREADS; i++) {
        struct heap *other = heap_other(&words[i]);
        for (int j = 0; j < BLOCKS; j++)
            blocks[i][j] = magazine_pop(other, size_class_of(900));
    }
    for (int i = 0; i < THREADS; i++) {
        struct heap *other = words[i]->heap;
        store_relaxed(&other->in_door, 1u);
        life_retire(other);
        for (int j = 0; j < BLOCKS; j++)
            hak_free(blocks[i][j]);
        mail_post_all(heap);
        CHECK(mail_waits(other));
    }
    CHECK(hak_set_limit(1, 0) == 0);
    CHECK(hak_malloc(MIB) != NULL);
    for (const struct heap *other = life_heaps(); other != NULL; other = other->next)
        CHECK(other == heap || (other->inbox == NULL && magazine_count(other, size_class_of(900)) == 0));
    CHECK(span_dirty_bytes() == 0);
}

/* The memory that passes the limit is not handed out before the rest has gone. */
static void gives_back_within_the_request(void)
{
    static const size_t sizes[] = {100, 5000, 32768, 40000, 3000000};
    heap_own();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK(hak_set_limit(0, 0) == 0);
        hak_free(hak_malloc(4 * MIB));
        CHECK(hak_set_limit(1, 0) == 0);
        size_t held = limit_held();
        while (limit_held() == held && bigcache_bytes() != 0)
            CHECK(hak_malloc(sizes[i]) != NULL);
        CHECK(bigcache_bytes() == 0 && span_dirty_bytes() == 0);
    }
}

static void requested_bytes_stay_exact(void)
{
    struct heap *heap = heap_own();
    int64_t before = heap->granted - heap->view.budget;
    CHECK(hak_set_limit(1, 0) == 0);
    nodes_free(nodes_take(NULL, 2048, 8 * MIB));
    CHECK(heap->granted - heap->view.budget == before + (int64_t)(8 * MIB));
}

static void illegal_limits_change_nothing(void)
{
    CHECK(hak_set_limit(5, 7) == 0);
    CHECK(hak_set_limit(8, 7) == EINVAL);
    CHECK(hak_set_limit(SIZE_MAX, 1) == EINVAL);
    CHECK(policy.soft_limit == 5 && policy.hard_limit == 7);
    CHECK(hak_set_limit(0, 7) == 0);
    CHECK(policy.soft_limit == SIZE_MAX && policy.hard_limit == 7);
    CHECK(hak_set_limit(7, 7) == 0);
    CHECK(hak_set_limit(0, 0) == 0);
    CHECK(policy.soft_limit == SIZE_MAX && policy.hard_limit == SIZE_MAX);
}

/* ---- The control group's. */

static void control_group_limits_softly(void)
{
    heap_own();
    fake_os_set_memory_limit(48 * MIB);
    listener_set(listener_count);
    struct node *list = nodes_take(NULL, 3000, 20 * MIB);
    CHECK(fake_os_memory_limit_reads() == 0);
    list = nodes_take(list, 3000, 18 * MIB);
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(policy.soft_limit == 42 * MIB);
    CHECK(listener_calls == 0);
    list = nodes_take(list, 3000, 20 * MIB);
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(listener_calls == 1 && listener_last_limit == 42 * MIB);
    nodes_free(list);
}

/* It may be lower than where it is looked for. */
static void control_group_may_be_small(void)
{
    heap_own();
    fake_os_set_memory_limit(1);
    listener_set(listener_count);
    nodes_free(nodes_take(NULL, 100000, 40 * MIB));
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(listener_calls == 1 && listener_last_limit == 1);
}

static void control_group_is_asked_again(void)
{
    heap_own();
    fake_os_set_memory_limit(0);
    struct node *list = nodes_take(NULL, 3000, 38 * MIB);
    CHECK(fake_os_memory_limit_reads() == 1);
    CHECK(policy.soft_limit == 0);
    fake_os_set_memory_limit(48 * MIB);
    list = nodes_take(list, 3000, 8 * MIB);
    CHECK(fake_os_memory_limit_reads() == 2);
    CHECK(policy.soft_limit == 42 * MIB);
    nodes_free(list);
}

static void control_group_is_not_asked_when_limits_are_set(void)
{
    heap_own();
    fake_os_set_memory_limit(1);
    CHECK(hak_set_limit(0, 0) == 0);
    listener_set(listener_count);
    nodes_free(nodes_take(NULL, 3000, 40 * MIB));
    CHECK(fake_os_memory_limit_reads() == 0);
    CHECK(listener_calls == 0);
}

/* Four in a slab, whatever a page is. */
enum { SIZE = 32768, COUNT = 32 * MIB / SIZE, OF_SLAB = 4 };

static char *blocks[COUNT];

static void fill(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (blocks[i] == NULL)
            CHECK((blocks[i] = hak_malloc(SIZE)) != NULL);
}

static void leave_holes(void *unused)
{
    (void)unused;
    fill(COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % OF_SLAB != 0) {
            hak_free(blocks[i]);
            blocks[i] = NULL;
        }
}

/* What has been given back does not count, until it is used again: without a unit more. */
static void holes_do_not_count(void)
{
    heap_own();
    leave_holes(NULL);
    hak_purge(HAK_PURGE_CACHED);
    size_t bound = limit_held();
    CHECK(absent_bytes() >= 16 * MIB);
    CHECK(hak_set_limit(bound - 4 * MIB, 0) == 0);
    listener_set(listener_count);
    hak_free(hak_malloc(4 * MIB));
    CHECK(bigcache_bytes() == 4 * MIB && listener_calls == 0);
    fill(COUNT / 2);
    CHECK(bigcache_bytes() == 4 * MIB && listener_calls == 0);
    fill(COUNT);
    CHECK(bigcache_bytes() == 0 && listener_calls == 1);
    CHECK(limit_held() <= bound + 4 * MIB);
}

/* Nobody has asked for that. */
static void soft_limit_gives_back_holes(void)
{
    heap_own();
    leave_holes(NULL);
    CHECK(hak_set_limit(24 * MIB, 0) == 0);
    listener_set(listener_count);
    CHECK(hak_malloc(4 * MIB) != NULL);
    CHECK(absent_bytes() >= 16 * MIB);
    CHECK(listener_calls == 0);
}

static void soft_limit_gives_back_what_sleepers_hold(void)
{
    struct worker worker;
    heap_own();
    worker_start(&worker);
    worker_run(&worker, leave_holes, NULL);
    CHECK(hak_set_limit(24 * MIB, 0) == 0);
    listener_set(listener_count);
    CHECK(hak_malloc(4 * MIB) != NULL);
    CHECK(absent_bytes() >= 16 * MIB);
    CHECK(listener_calls == 0);
    worker_stop(&worker);
}

static uint64_t times_emptied(void)
{
    uint64_t times = 0;
    for (const struct heap *heap = life_heaps(); heap != NULL; heap = heap->next)
        times += heap->counts->of[COUNT_EMPTIED];
    return times;
}

/* A program above its limit whose live blocks are all that there is does not pay for it at each step. */
static void memory_is_taken_from_threads_now_and_then(void)
{
    struct worker worker;
    heap_own();
    fake_clock_set(1000);
    worker_start(&worker);
    worker_run(&worker, leave_holes, NULL);
    CHECK(hak_set_limit(1, 0) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(hak_malloc(4 * MIB) != NULL);
    CHECK(times_emptied() == 1);
    fake_clock_set(1100);
    CHECK(hak_malloc(4 * MIB) != NULL);
    CHECK(times_emptied() == 2);
    fake_clock_set(0);
    worker_stop(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(soft_limit_empties_the_bigcache),
        UNIT_TEST(soft_limit_purges),
        UNIT_TEST(soft_limit_empties_idle_heaps),
        UNIT_TEST(holes_do_not_count),
        UNIT_TEST(soft_limit_gives_back_holes),
        UNIT_TEST(soft_limit_gives_back_what_sleepers_hold),
        UNIT_TEST(memory_is_taken_from_threads_now_and_then),
        UNIT_TEST(gives_back_within_the_request),
        UNIT_TEST(requested_bytes_stay_exact),
        UNIT_TEST(illegal_limits_change_nothing),
        UNIT_TEST(control_group_limits_softly),
        UNIT_TEST(control_group_may_be_small),
        UNIT_TEST(control_group_is_asked_again),
        UNIT_TEST(control_group_is_not_asked_when_limits_are_set),
    };
    return cmocka_run_group_tests_name("relief", tests, NULL, NULL);
}
