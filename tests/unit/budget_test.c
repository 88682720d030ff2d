/* heap/budget.h: where heartbeats and samples fall in the stream of requested bytes. */
#include "unit.h"

#include "base/chance.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heap/budget.h"
#include "heap/events.h"
#include "heaps.h"
#include "random.h"

enum { RATE = 16384, BEAT = 1 << 20 };

static unsigned beats;

static void count_beat(struct heap *heap)
{
    CHECK(!budget_is_at_beat(heap) && heap->view.budget >= 0);
    beats++;
}

/* As the door does, without a block. */
static bool request(struct heap *heap, size_t size)
{
    bool sampled = false;
    heap->view.budget -= (int64_t)size;
    if (heap->view.budget < 0) {
        sampled = budget_take_sample(heap);
        budget_grant(heap);
        CHECK(heap->view.budget >= 0 && !budget_is_at_beat(heap));
    }
    return sampled;
}

/* A heap that samples from now on, always the same way. */
static struct heap *sampling(size_t rate)
{
    fake_os_refuse(FAKE_RANDOM, 1, FAKE_EVERY);
    struct heap *heap = heap_own();
    policy.profile_bytes = rate;
    policy.guard_bytes = 0;
    heap->random = 0;
    budget_grant(heap);
    return heap;
}

struct estimate {
    double bytes;
    double wanted;
    double variance;
};

static void add_request(struct estimate *estimate, struct heap *heap, size_t size, double rate)
{
    double chance = chance_within((double)size / rate);
    estimate->wanted += (double)size;
    estimate->variance += (double)size * (double)size * (1 - chance) / chance;
    if (request(heap, size))
        estimate->bytes += (double)size / chance;
}

static void check_estimate(const struct estimate *estimate)
{
    double miss = estimate->bytes - estimate->wanted;
    CHECK(miss * miss <= 9 * estimate->variance);
    CHECK(estimate->variance < estimate->wanted * estimate->wanted / 1000);
}

static void each_size_is_estimated_rightly(void)
{
    static const size_t sizes[] = {1, 16, 100, 1000, 8000, 32768, 200000, 1 << 20};
    struct heap *heap = sampling(RATE);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct estimate estimate = {0};
        for (size_t done = 0; done < 1 << 25; done += sizes[i])
            add_request(&estimate, heap, sizes[i], RATE);
        check_estimate(&estimate);
    }
}

/* Patterns whose period is that of something else: each size has its own estimate. */
static void no_pattern_hides(void)
{
    static const size_t sizes[] = {16, 4096, 16, 48, RATE, 16, 8, 500};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    struct heap *heap = sampling(RATE);
    struct estimate estimates[SIZES] = {0};
    for (int i = 0; i < 300000; i++)
        add_request(&estimates[i % SIZES], heap, sizes[i % SIZES], RATE);
    struct estimate all = {0};
    for (int i = 0; i < SIZES; i++) {
        double miss = estimates[i].bytes - estimates[i].wanted;
        CHECK(miss * miss < 9 * estimates[i].variance);
        all.bytes += estimates[i].bytes;
        all.wanted += estimates[i].wanted;
        all.variance += estimates[i].variance;
    }
    check_estimate(&all);
}

static void rate_of_one_takes_each_request(void)
{
    struct heap *heap = sampling(1);
    for (size_t size = 1; size < 5000; size++)
        CHECK(request(heap, size));
    CHECK(!request(heap, 0));
}

static void starts_and_stops_at_the_next_visit(void)
{
    struct heap *heap = sampling(1);
    CHECK(request(heap, 10));
    policy.profile_bytes = 0;
    CHECK(!request(heap, 10));
    CHECK(heap->sample_after == INT64_MAX && heap->view.budget > 0);
    policy.profile_bytes = 1;
    size_t before = 0;
    for (; !request(heap, 1024); before += 1024)
        ;
    CHECK(before > 0 && before <= policy.heartbeat_bytes + 1024);
    policy.profile_bytes = RATE;
    CHECK(!request(heap, 10));
}

/* A heap that is new begins with its first byte. */
static void new_heaps_sample_at_once(void)
{
    struct view *word;
    heap_own();
    policy.profile_bytes = 1;
    struct heap *heap = heap_other(&word);
    CHECK(request(heap, 1));
}

static void samples_leave_beats_alone(void)
{
    heap_own();
    policy.heartbeat_bytes = BEAT;
    policy.profile_bytes = RATE;
    for (int i = 0; i < 8192; i++)
        hak_free(hak_malloc(1024)); /* uses up what was granted before */
    heap_events.heartbeat = count_beat;
    for (int i = 0; i < 100 * 1024; i++)
        hak_free(hak_malloc(1024));
    CHECK(beats >= 99 && beats <= 101);
}

static void hurry_makes_a_beat_due(void)
{
    struct heap *heap = sampling(RATE);
    for (int i = 0; i < 2; i++) {
        int64_t position = budget_position(heap);
        budget_hurry(heap);
        CHECK(budget_is_at_beat(heap) && heap->view.budget < 0 && budget_position(heap) == position);
    }
    CHECK(!request(heap, 0));
}

/* A write beyond ends the process. */
static void small_blocks_need_a_page_of_the_heap(void)
{
    enum { OF_HEAP = 4 << 10, SMALL = 2 << 10, COUNT = 40000 };
    struct heap *heap = heap_own();
    char *from = (char *)align_up((uintptr_t)heap + OF_HEAP, os_page_size());
    char *end = (char *)(heap + 1);
    bool apart = from < end; /* not where pages are larger */
    policy.heartbeat_bytes = COUNT * (size_t)SMALL / 2 / (2 * SIZE_CLASSES); /* each looks at one class */
    for (size_t size = 1; size <= SMALL; size *= 2)
        hak_free(hak_malloc(size));
    CHECK(!apart || mprotect(from, (size_t)(end - from), PROT_READ) == 0);
    for (int i = 0; i < COUNT; i++)
        hak_free(hak_malloc((size_t)i % SMALL));
    CHECK(!apart || mprotect(from, (size_t)(end - from), PROT_READ | PROT_WRITE) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(each_size_is_estimated_rightly),
        UNIT_TEST(no_pattern_hides),
        UNIT_TEST(rate_of_one_takes_each_request),
        UNIT_TEST(starts_and_stops_at_the_next_visit),
        UNIT_TEST(new_heaps_sample_at_once),
        UNIT_TEST(samples_leave_beats_alone),
        UNIT_TEST(hurry_makes_a_beat_due),
        UNIT_TEST(small_blocks_need_a_page_of_the_heap),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
