/* learn/signals.h: what is seen of the allocator, and what it costs. */
#include "unit.h"

#include "config/policy.h"
#include "fake_os.h"
#include "heaps.h"
#include "learn/prices.h"
#include "learn/signals.h"
#include "worker.h"

static uint64_t now_ms = 100000;
static struct signals signals;

static struct epoch look(struct heap *heap, uint64_t ms)
{
    struct epoch epoch;
    now_ms += ms;
    fake_clock_set(now_ms);
    signals_beat(&signals, heap, now_ms);
    signals_end(&signals, now_ms, 100000, &epoch);
    return epoch;
}

static void begin_to_look(struct heap *heap)
{
    signals_begin(&signals, true, now_ms);
    signals_beat(&signals, heap, now_ms);
}

static void counts_what_is_asked_for(void)
{
    struct heap *heap = heap_own();
    fake_clock_set(now_ms);
    hak_free(hak_malloc(70000)); /* before it began */
    begin_to_look(heap);
    uint64_t before = heap_requested(heap);
    for (int i = 0; i < 10; i++)
        hak_free(hak_malloc(100000));
    struct epoch epoch = look(heap, 40);
    CHECK(epoch.requested == heap_requested(heap) - before && epoch.large[1] == 10 && epoch.large[0] == 0);
    CHECK(epoch.ns[COST_LARGE] >= 10 * PRICE_LARGE && epoch.ms == 40 && epoch.end_ms == 40 && epoch.heaps == 1);
    CHECK(epoch.ns[COST_REFILLS] == 0 && epoch.ns[COST_WAITS] == 0 && !epoch.changed);
}

/* There are fewer places than heaps. */
static void heaps_share_places(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    other->number = own->number + HEAPS_SEEN;
    other->capacity_bytes = own->capacity_bytes + 1000000;
    fake_clock_set(now_ms);
    begin_to_look(own);
    CHECK(signals.cached == own->capacity_bytes);
    now_ms += 10;
    signals_beat(&signals, other, now_ms); /* takes the place */
    CHECK(signals.cached == other->capacity_bytes && signals.sum.requested == 0);
    other->granted += 5000000;
    struct epoch epoch = look(other, 10);
    CHECK(epoch.requested == 5000000);
    signals_beat(&signals, own, now_ms);
    CHECK(signals.cached == own->capacity_bytes && signals.sum.requested == 5000000);
}

static void counts_refills_by_class(void)
{
    static void *blocks[2000];
    struct heap *heap = heap_own();
    fake_clock_set(now_ms);
    begin_to_look(heap);
    uint32_t class = (uint32_t)size_class_of(3000);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        blocks[i] = hak_malloc(3000);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hak_free(blocks[i]);
    struct epoch epoch = look(heap, 8);
    CHECK(epoch.refills[class] == heap->counts->refills[class] && epoch.refills[class] > 0);
    CHECK(epoch.ns[COST_REFILLS] >= epoch.refills[class] * PRICE_REFILL && epoch.ns[COST_CALLS] > 0);
    CHECK(epoch.ns[COST_LARGE] > 0); /* runs of units, for slabs */
}

static void memory_costs_by_time(void)
{
    struct heap *heap = heap_own();
    policy.memory_price = 1000000; /* ns for each MiB and second */
    fake_clock_set(now_ms);
    hak_free(hak_malloc(8 << 20));
    begin_to_look(heap);
    struct epoch epoch = look(heap, 50);
    CHECK(epoch.held_ms[COST_KEPT] == (uint64_t)(8 << 20) * 50 && epoch.ns[COST_KEPT] == 8 * 50 * 1000);
    CHECK(epoch_held(&epoch, COST_KEPT) == 8 << 20);
}

/* An epoch begins after another heap has settled for so long, requests so many bytes until its first heartbeat and no more, and they count
 * as three times what the heap requests that is in the sum: a quarter of common costs is left. */
static void check_straddling(uint64_t settles_ms, int64_t requested)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    policy.memory_price = 1000000;
    fake_clock_set(now_ms);
    hak_free(hak_malloc(8 << 20));
    begin_to_look(own);
    (void)look(other, 10);
    now_ms += settles_ms;
    begin_to_look(own);
    other->granted += requested;
    (void)look(other, 10);
    own->granted += 1000000;
    struct epoch epoch = look(own, 10);
    CHECK(epoch.requested == 1000000 && epoch.ns[COST_KEPT] == 8 * 20 * 1000 / 4);
}

/* An epoch that begins between two heartbeats of a heap: what that has requested until the first is in no sum, but its page faults
 * and the like are. */
static void common_costs_are_of_all_that_was_requested(void)
{
    check_straddling(0, 3000000);
}

/* What a heap has requested since a heartbeat before the epoch began is not all of the epoch. */
static void of_what_straddles_the_beginning_a_part_counts(void)
{
    check_straddling(30, 12000000);
}

static void fill_magazines(void *heap)
{
    static void *some[2000];
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        some[i] = hak_malloc(3000);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        hak_free(some[i]);
    signals_beat(&signals, *(struct heap **)heap = heap_own(), now_ms += 1);
}

static void ended_threads_cache_nothing(void)
{
    struct worker worker;
    struct heap *of_worker;
    struct heap *heap = heap_own();
    fake_clock_set(now_ms);
    begin_to_look(heap);
    uint64_t alone = signals.cached;
    worker_start(&worker);
    worker_run(&worker, fill_magazines, &of_worker);
    signals_begin(&signals, false, now_ms);
    CHECK(signals.cached == alone + of_worker->capacity_bytes && of_worker->capacity_bytes > 0);
    worker_stop(&worker);
    signals_begin(&signals, false, now_ms);
    CHECK(signals.cached == alone);
}

/* What was done under another policy stays out. */
static void an_epoch_of_another_policy_begins_anew(void)
{
    struct heap *heap = heap_own();
    fake_clock_set(now_ms);
    begin_to_look(heap);
    hak_free(hak_malloc(100000));
    signals_begin(&signals, true, now_ms);
    CHECK(look(heap, 8).requested == 0);
    hak_free(hak_malloc(100000));
    signals_begin(&signals, false, now_ms);
    hak_free(hak_malloc(100000));
    CHECK(look(heap, 8).large[1] == 2);
}

static void a_change_in_the_middle_is_seen(void)
{
    struct heap *heap = heap_own();
    fake_clock_set(now_ms);
    begin_to_look(heap);
    for (int i = 0; i < 100; i++)
        hak_free(hak_malloc(40000));
    fake_clock_set(now_ms += 8);
    signals_beat(&signals, heap, now_ms);
    signals_halve(&signals);
    for (int i = 0; i < 100; i++)
        hak_free(hak_malloc(1000000));
    CHECK(look(heap, 8).changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(counts_what_is_asked_for),
        UNIT_TEST(heaps_share_places),
        UNIT_TEST(counts_refills_by_class),
        UNIT_TEST(memory_costs_by_time),
        UNIT_TEST(common_costs_are_of_all_that_was_requested),
        UNIT_TEST(of_what_straddles_the_beginning_a_part_counts),
        UNIT_TEST(ended_threads_cache_nothing),
        UNIT_TEST(an_epoch_of_another_policy_begins_anew),
        UNIT_TEST(a_change_in_the_middle_is_seen),
    };
    return cmocka_run_group_tests_name("learn_signals", tests, NULL, NULL);
}
