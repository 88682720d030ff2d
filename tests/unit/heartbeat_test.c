/* heap/heartbeat.h: requested bytes are exact, and what a beat does. */
#include "unit.h"

#include <errno.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/budget.h"
#include "heap/events.h"
#include "heap/heartbeat.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heaps.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "random.h"
#include "scale.h"

enum { BEAT = 1 << 16, CLASS = 4, SIZE = 64 };

static size_t beats;

static void count_beat(struct heap *heap)
{
    CHECK(heap->view.budget >= 0);
    CHECK(heap->in_door == 1);
    beats++;
}

static int64_t requested(const struct heap *heap)
{
    return heap->granted - heap->view.budget;
}

/* Requests `bytes` in small blocks. */
static void request(size_t bytes)
{
    for (size_t done = 0; done < bytes; done += 1024)
        hak_free(hak_malloc(1024));
}

static void requested_bytes_are_exact(void)
{
    uint64_t seed = 13;
    struct heap *heap = heap_own();
    policy.heartbeat_bytes = BEAT;
    int64_t wanted = requested(heap);
    CHECK(wanted == 1);
    for (size_t i = 0; i < scaled_work(300000); i++) {
        size_t bytes = random_below(&seed, random_below(&seed, 100) == 0 ? 400000 : 2000);
        void *block = hak_malloc(bytes);
        CHECK(block != NULL);
        wanted += (int64_t)bytes;
        CHECK(requested(heap) == wanted);
        hak_free(block);
        CHECK(requested(heap) == wanted);
    }
    CHECK(hak_calloc(10, 100) != NULL);
    CHECK(requested(heap) == wanted + 1000);
}

/* From magazines, from the door, and large ones. */
static void aligned_requests_are_exact(void)
{
    uint64_t seed = 17;
    struct heap *heap = heap_own();
    int64_t wanted = requested(heap);
    for (size_t i = 0; i < scaled_work(100000); i++) {
        size_t bytes = random_below(&seed, random_below(&seed, 100) == 0 ? 100000 : 2000);
        size_t alignment = (size_t)8 << random_below(&seed, 13);
        void *block = hak_aligned_alloc(alignment, bytes);
        CHECK(block != NULL && (uintptr_t)block % alignment == 0);
        wanted += (int64_t)bytes;
        CHECK(requested(heap) == wanted);
        hak_free(block);
    }
}

static void empty_blocks_cost_nothing(void)
{
    struct heap *heap = heap_own();
    int64_t before = requested(heap);
    for (int i = 0; i < 1000; i++)
        hak_free(hak_malloc(0));
    CHECK(requested(heap) == before);
}

static void impossible_requests_do_no_harm(void)
{
    struct heap *heap = heap_own();
    for (volatile size_t less = 0; less < 8; less++) {
        errno = 0;
        CHECK(hak_malloc(PTRDIFF_MAX - less) == NULL);
        CHECK(errno == ENOMEM);
        CHECK(hak_malloc(SIZE_MAX - less) == NULL);
    }
    CHECK(heap->view.budget >= 0);
    CHECK(heap->granted >= heap->view.budget);
    hak_free(hak_malloc(SIZE));
}

static void beats_come_by_bytes(void)
{
    heap_own();
    policy.heartbeat_bytes = BEAT;
    request((size_t)8 << 20); /* uses up what was granted before */
    heap_events.heartbeat = count_beat;
    request((size_t)100 * BEAT);
    CHECK(beats >= 99 && beats <= 101);
    beats = 0;
    void *block = hak_malloc((size_t)50 * BEAT);
    CHECK(beats == 1);
    hak_free(block);
    CHECK(beats == 2);
}

/* A program that only frees has heartbeats too. */
static void beats_come_by_freed_bytes(void)
{
    enum { COUNT = 4000, FREED_SIZE = 1024 };
    static void *blocks[COUNT];
    heap_own();
    policy.heartbeat_bytes = BEAT;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = hak_malloc(FREED_SIZE);
    heap_events.heartbeat = count_beat;
    for (int i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
    CHECK(beats >= COUNT * FREED_SIZE / BEAT / 8 && beats <= COUNT * FREED_SIZE / BEAT / 2);
    /* As much requested as freed: no more than by requests. */
    beats = 0;
    request((size_t)100 * BEAT);
    CHECK(beats >= 99 && beats <= 101);
}

enum { PAIR = 128 << 10, PAIR_BEAT = 4 * PAIR, PAIR_BEATS = 80 };

static uint64_t now_ms = 100000;

static void nothing(void)
{
}

static void pass_time(void)
{
    fake_clock_set(++now_ms);
}

/* One large block at a time, of so many beats' bytes in all. Returns how many there were. */
static size_t beats_of_pairs(void (*before_free)(void), void (*after_free)(void))
{
    beats = 0;
    for (int i = 0; i < PAIR_BEATS * PAIR_BEAT / PAIR; i++) {
        void *block = hak_malloc(PAIR);
        before_free();
        hak_free(block);
        after_free();
    }
    return beats;
}

static bool are_all(size_t count)
{
    return count >= PAIR_BEATS - 1 && count <= PAIR_BEATS + 1;
}

static void stop_clock(struct heap *heap)
{
    policy.heartbeat_bytes = PAIR_BEAT;
    request((size_t)8 << 20); /* uses up what was granted before */
    fake_clock_set(now_ms);
    heartbeat(heap);
    heap_events.heartbeat = count_beat;
}

/* Of what freed blocks serve while no time passes an eighth counts. In the hardened library they rest before. */
static void what_is_requested_again_puts_beats_off(void)
{
    stop_clock(heap_own());
    size_t count = beats_of_pairs(nothing, nothing);
    CHECK(HARDENED || (count >= PAIR_BEATS / BEAT_SHARE - 1 && count <= PAIR_BEATS / BEAT_SHARE + 1));
}

/* At once, however fast the program was until then. */
static void time_brings_beats(void)
{
    stop_clock(heap_own());
    (void)beats_of_pairs(nothing, nothing);
    CHECK(are_all(beats_of_pairs(pass_time, nothing)));
}

static void what_no_freed_block_serves_brings_beats(void)
{
    stop_clock(heap_own());
    CHECK(are_all(beats_of_pairs(nothing, large_evict_all)));
}

/* Growth, and what a program gives up in the end, are seen as ever. */
static void what_is_not_requested_again_brings_beats(void)
{
    enum { COUNT = 160, OF_REQUESTS = COUNT * PAIR / PAIR_BEAT, OF_FREES = COUNT / (2 * PAIR_BEAT / PAIR + 1) };
    static void *blocks[COUNT];
    stop_clock(heap_own());
    for (int i = 0; i < COUNT; i++)
        blocks[i] = hak_malloc(PAIR);
    CHECK(beats >= OF_REQUESTS - 1 && beats <= OF_REQUESTS + 1);
    (void)beats_of_pairs(nothing, nothing);
    beats = 0;
    for (int i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
    CHECK(beats >= OF_FREES - 1 && beats <= OF_FREES + 1);
}

/* Nothing is granted beyond the next sample. */
static void samples_are_not_put_off(void)
{
    struct heap *heap = heap_own();
    stop_clock(heap);
    heap->sample_after = heap->granted + PAIR / 2;
    for (int i = 0; i < 3; i++)
        hak_free(hak_malloc(PAIR));
    CHECK(heap->view.budget >= 0 && heap->granted <= heap->sample_after);
}

static void beat_posts_and_collects_mail(void)
{
    struct view *word;
    struct heap *own = heap_own();
    struct heap *other = heap_other(&word);
    void *theirs = magazine_pop(other, CLASS);
    void *ours = hak_malloc(SIZE);
    hak_free(theirs);
    CHECK(!mail_waits(other));
    mail_send(other, own, ours);
    mail_post_all(other);
    heartbeat(own);
    CHECK(mail_waits(other));
    CHECK(!mail_waits(own));
    CHECK(magazine_is_top(own, CLASS, ours));
}

static void idle_magazines_are_emptied(void)
{
    struct heap *heap = heap_own();
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = hak_malloc(SIZE);
    for (int i = 0; i < 100; i++)
        hak_free(blocks[i]);
    CHECK(magazine_count(heap, CLASS) > 0);
    for (int i = 0; i < 2 * SIZE_CLASSES; i++)
        heartbeat(heap);
    CHECK(magazine_count(heap, CLASS) == 0);
}

static void leave_a_duplicate(uintptr_t unused)
{
    struct heap *heap = heap_own();
    (void)unused;
    void *first = hak_malloc(SIZE);
    void *second = hak_malloc(SIZE);
    hak_free(first);
    hak_free(second);
    hak_free(first);
    for (int i = 0; i < SIZE_CLASSES; i++)
        heartbeat(heap);
}

static void beats_audit(void)
{
    CHECK_DIES(leave_a_duplicate, 0, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64 B, thread [0-9]+\\)");
}

static void old_memory_goes_back(void)
{
    struct heap *heap = heap_own();
    fake_clock_set(100000);
    heartbeat(heap);
    hak_free(hak_malloc(8 << 20));
    CHECK(bigcache_bytes() == 8 << 20);
    fake_clock_set(100000 + policy.bigcache_ms[0]);
    heartbeat(heap);
    CHECK(bigcache_bytes() == 8 << 20);
    uint64_t evicted = 100000 + 2 * policy.bigcache_ms[0];
    fake_clock_set(evicted);
    heartbeat(heap);
    CHECK(bigcache_bytes() == 0);
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.dirty_bytes >= 8 << 20);
    fake_clock_set(evicted + 2 * policy.purge_ms);
    heartbeat(heap);
    heartbeat(heap); /* not all at once */
    span_stats(&stats);
    CHECK(stats.dirty_bytes == 0);
}

/* A part at each heartbeat; only then it looks for holes. */
static void much_goes_back_in_parts(void)
{
    enum { MIBS = 40, BEATS_MOST = 20 };
    struct heap *heap = heap_own();
    struct span_stats stats;
    fake_clock_set(100000);
    heartbeat(heap);
    hak_free(hak_malloc(MIBS * MIB));
    large_evict_all();
    span_stats(&stats);
    size_t before = stats.dirty_bytes;
    CHECK(before >= MIBS * MIB);
    fake_clock_set(100000 + 2 * policy.purge_ms);
    unsigned beats = 0;
    for (size_t left = before; left > 0; left = stats.dirty_bytes) {
        CHECK(beats++ < BEATS_MOST && heap->aged_ms == 100000);
        heartbeat(heap);
        span_stats(&stats);
        CHECK(stats.dirty_bytes < left && stats.dirty_bytes + 10 * MIB > left);
    }
    heartbeat(heap);
    CHECK(beats > 3 && heap->aged_ms == 100000 + 2 * policy.purge_ms);
}

/* However much longer free pages are kept. */
static void blocks_go_in_their_own_time(void)
{
    struct heap *heap = heap_own();
    policy.purge_ms = 60000;
    fake_clock_set(100000);
    heartbeat(heap);
    hak_free(hak_malloc(8 << 20));
    fake_clock_set(100000 + policy.bigcache_ms[0] + 300);
    heartbeat(heap);
    CHECK(bigcache_bytes() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(requested_bytes_are_exact),
        UNIT_TEST(aligned_requests_are_exact),
        UNIT_TEST(empty_blocks_cost_nothing),
        UNIT_TEST(impossible_requests_do_no_harm),
        UNIT_TEST(beats_come_by_bytes),
        UNIT_TEST(beats_come_by_freed_bytes),
        UNIT_TEST(what_is_requested_again_puts_beats_off),
        UNIT_TEST(time_brings_beats),
        UNIT_TEST(what_no_freed_block_serves_brings_beats),
        UNIT_TEST(what_is_not_requested_again_brings_beats),
        UNIT_TEST(samples_are_not_put_off),
        UNIT_TEST(beat_posts_and_collects_mail),
        UNIT_TEST(idle_magazines_are_emptied),
        UNIT_TEST(beats_audit),
        UNIT_TEST(old_memory_goes_back),
        UNIT_TEST(much_goes_back_in_parts),
        UNIT_TEST(blocks_go_in_their_own_time),
    };
    return cmocka_run_group_tests_name("heartbeat", tests, NULL, NULL);
}
