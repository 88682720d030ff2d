/* observe/profile.h: that the estimates are right, that sampled blocks are good blocks, and what is counted of them. The file
 * that is written has tests of its own (profile_dump_test.c). */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "base/chance.h"
#include "check/check.h"
#include "config/policy.h"
#include "fake_os.h"
#include "heaps.h"
#include "observe/depot.h"
#include "observe/profile_slabs.h"
#include "profiles.h"
#include "random.h"
#include "scale.h"

enum { RATE = 16384, SIZES_MOST = 64 };

/* ---- Estimates. */

struct expectation {
    double bytes;
    double variance;
};

static void expect(struct expectation *expected, size_t size)
{
    double chance = chance_within((double)size / RATE);
    expected->bytes += (double)size;
    expected->variance += (double)size * (double)size * (1 - chance) / chance;
}

static void check_estimate(const struct expectation *expected, double estimate)
{
    double miss = estimate - expected->bytes;
    CHECK(miss * miss <= 9 * expected->variance);
}

static size_t some_size(uint64_t *seed)
{
    static const size_t limits[] = {16, 64, 300, 2000, 30000, 300000};
    return 1 + random_below(seed, limits[random_below(seed, 6)]);
}

static void balanced_loops_are_estimated_rightly(void)
{
    uint64_t seed = 5;
    struct expectation expected = {0};
    profile_begin(RATE);
    for (size_t i = 0; i < scaled_work(400000); i++) {
        size_t size = some_size(&seed);
        expect(&expected, size);
        hak_free(hak_malloc(size));
    }
    CHECK(expected.variance < expected.bytes * expected.bytes / 100);
    check_estimate(&expected, profile_estimate(profile_allocated));
    CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0 && profile_totals.live_weight == 0);
}

/* Patterns: the same few sizes, always in the same order. */
static void patterns_are_estimated_rightly(void)
{
    static const size_t sizes[] = {8, 16384, 24, 4096, 100, 48};
    struct expectation expected[6] = {{0}};
    double estimate[6] = {0};
    profile_begin(RATE);
    for (size_t i = 0; i < scaled_work(300000); i++) {
        expect(&expected[i % 6], sizes[i % 6]);
        hak_free(hak_malloc(sizes[i % 6]));
    }
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        for (size_t j = 0; j < 6; j++)
            if (site.allocated.bytes == site.allocated.count * sizes[j])
                estimate[j] += profile_scaled(&site.allocated);
    }
    for (size_t j = 0; j < 6; j++)
        check_estimate(&expected[j], estimate[j]);
}

static void live_sets_are_estimated_rightly(void)
{
    enum { BLOCKS = 20000 };
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    uint64_t seed = 6;
    struct expectation all = {0};
    struct expectation half = {0};
    profile_begin(RATE);
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = some_size(&seed);
        blocks[i] = hak_malloc(sizes[i]);
        expect(&all, sizes[i]);
    }
    check_estimate(&all, profile_estimate(profile_live));
    check_estimate(&all, (double)profile_totals.live_weight);
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 2 == 0)
            hak_free(blocks[i]);
        else
            expect(&half, sizes[i]);
    }
    check_estimate(&half, profile_estimate(profile_live));
    check_estimate(&all, profile_estimate(profile_peak));
    check_estimate(&all, (double)profile_totals.peak_weight);
    check_estimate(&all, profile_estimate(profile_allocated));
    for (int i = 1; i < BLOCKS; i += 2)
        hak_free(blocks[i]);
    CHECK(profile_totals.live_weight == 0 && slabs_counts().blocks == 0 && slabs_counts().bytes == 0);
    check_estimate(&all, profile_estimate(profile_peak));
}

/* What grows where it is was requested by all that it grew. */
static void growing_blocks_are_estimated_rightly(void)
{
    enum { BLOCKS = 400, STEP = 8192, STEPS = 30 };
    static char *blocks[BLOCKS];
    struct expectation expected = {0};
    profile_begin(RATE * 16);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(40000);
        for (size_t step = 1; step <= STEPS; step++)
            blocks[i] = hak_realloc(blocks[i], 40000 + step * STEP);
        double size = 40000 + STEPS * STEP;
        double chance = chance_within(size / (RATE * 16));
        expected.bytes += size;
        expected.variance += size * size * (1 - chance) / chance;
    }
    check_estimate(&expected, profile_estimate(profile_live));
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0);
}

/* ---- Blocks. */

static void serves_each_size(void)
{
    profile_begin(1);
    for (size_t size = 1; size <= 1 << 20; size = size < 300 ? size + 1 : size * 9 / 8) {
        char *block = hak_malloc(size);
        CHECK(is_sampled(block) && hak_malloc_usable_size(block) >= size && (uintptr_t)block % (size < 16 ? 8 : 16) == 0);
        CHECK(profile_totals.live.count == 1 && profile_totals.live.bytes == size);
        memset(block, 1, size);
        hak_free_sized(block, size);
        CHECK(profile_totals.live.count == 0);
    }
    char *empty = hak_malloc(0);
    CHECK(empty != NULL && !is_sampled(empty));
    hak_free(empty);
}

static void serves_each_alignment(void)
{
    profile_begin(1);
    for (size_t alignment = 8; alignment <= 1 << 20; alignment *= 2) {
        for (size_t size = 1; size < 100000; size *= 7) {
            void *block;
            CHECK(hak_posix_memalign(&block, alignment, size) == 0);
            CHECK(is_sampled(block) && (uintptr_t)block % alignment == 0);
            memset(block, 2, size);
            hak_free_aligned_sized(block, alignment, size);
            block = hak_aligned_alloc(alignment, size);
            CHECK(is_sampled(block) && (uintptr_t)block % alignment == 0);
            hak_free(block);
        }
    }
    void *block = hak_valloc(100);
    CHECK(is_sampled(block));
    hak_free(block);
    CHECK(profile_totals.live.count == 0);
}

static void zeroes_and_resizes(void)
{
    profile_begin(1);
    for (int i = 0; i < 300; i++) {
        unsigned char *block = hak_calloc(7, 13);
        CHECK(is_sampled(block));
        for (int j = 0; j < 91; j++)
            CHECK(block[j] == 0);
        memset(block, i, 91);
        for (size_t size = 80; size < 3000000; size = size * 3 / 2) {
            block = hak_realloc(block, size);
            CHECK(is_sampled(block) && block[0] == (unsigned char)i && block[79] == (unsigned char)i);
            CHECK(profile_totals.live.count == 1);
        }
        block = hak_reallocarray(block, 5, 10);
        CHECK(is_sampled(block) && block[49] == (unsigned char)i);
        CHECK(hak_realloc(block, 0) == NULL);
        CHECK(profile_totals.live.count == 0 && profile_totals.live.bytes == 0);
    }
}

static void notes_the_size_of_large_blocks(void)
{
    profile_begin(1);
    char *block = hak_malloc(1 << 20);
    CHECK(profile_totals.live.bytes == 1 << 20);
    block = hak_realloc(block, 3 << 20);
    CHECK(profile_totals.live.bytes == 3 << 20 && profile_totals.live_weight == 3 << 20);
    block = hak_realloc(block, 100000);
    CHECK(profile_totals.live.bytes == 100000 && profile_totals.allocated.count == 1);
    hak_free(block);
    CHECK(profile_totals.live.bytes == 0 && profile_totals.live_weight == 0);
    /* One that the BigCache lends again begins anew. */
    block = hak_malloc(100000);
    CHECK(profile_totals.live.count == 1 && profile_totals.allocated.count == 2);
    hak_free(block);
}

static void *volatile kept;

static void free_twice(uintptr_t size)
{
    profile_begin(1);
    void *other = hak_malloc(size); /* so that the slab stays */
    kept = hak_malloc(size);
    CHECK(is_sampled(kept) && is_sampled(other));
    hak_free(kept);
    hak_free(kept);
}

static void free_inside(uintptr_t size)
{
    profile_begin(1);
    kept = (char *)hak_malloc(size) + 16;
    hak_free(kept);
}

static void resize_after_free(uintptr_t size)
{
    profile_begin(1);
    kept = hak_malloc(size);
    hak_free(kept);
    kept = hak_realloc(kept, size + 100);
}

static void free_by_too_large_a_size(uintptr_t size)
{
    profile_begin(1);
    kept = hak_malloc(size);
    hak_free_sized(kept, 2 * size + 100);
}

#define FAULT(text) "hakmem: fatal: " text " of 0x[0-9a-f]+ \\(class [0-9]+ B, thread [0-9]+\\)"

static void misuse_is_reported(void)
{
    CHECK_DIES(free_twice, 64, FAULT("double free"));
    CHECK_DIES(free_twice, 20000, FAULT("double free"));
    CHECK_DIES(free_twice, 100000, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(large, [0-9]+ B, thread [0-9]+\\)");
    CHECK_DIES(free_inside, 64, FAULT("invalid free"));
    CHECK_DIES(resize_after_free, 64, FAULT("use after free"));
    CHECK_DIES(free_by_too_large_a_size, 64, FAULT("free by too large a size"));
}

/* ---- What is counted. */

static __attribute__((noinline)) void *caller(size_t size)
{
    void *volatile block = hak_malloc(size);
    return block;
}

static void stacks_begin_with_the_programs_call(void)
{
    profile_begin(1);
    hak_free(caller(64));
    hak_free(caller(100000));
    for (uint32_t i = 0; i < 2; i++) {
        struct site site;
        size_t count;
        sites_copy(i, &site);
        const uintptr_t *calls = depot_get(site.stack, &count);
        CHECK(count > 1 && calls[0] - (uintptr_t)caller < 300);
    }
    CHECK(profile_totals.sites == 2);
}

static void sites_are_stacks_and_sizes(void)
{
    profile_begin(1);
    for (volatile int i = 0; i < 20; i++)
        hak_free(caller(i < 10 ? 60 + 4 * (size_t)(i % 2) : 200));
    CHECK(profile_totals.sites == 2 && profile_totals.allocated.count == 20);
    struct site site;
    sites_copy(0, &site);
    CHECK(site.allocated.count == 10 && site.allocated.bytes == 620);
}

/* At the peak, of all sites with blocks of this size. */
static uint64_t count_at_peak(size_t size)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile_totals.sites; i++) {
        struct site site;
        sites_copy(i, &site);
        if (site.allocated.bytes == site.allocated.count * size) {
            CHECK(site.peak.bytes == site.peak.count * size);
            count += site.peak.count;
        }
    }
    return count;
}

static void peaks_are_of_one_moment(void)
{
    profile_begin(1);
    void *first = caller(1000);
    void *second = caller(2000);
    hak_free(first);
    hak_free(second);
    first = caller(2500); /* less than both */
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 1 && count_at_peak(2500) == 0);
    CHECK(profile_totals.peak_weight == 3000);
    second = caller(1000);
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 0 && count_at_peak(2500) == 1);
    hak_free(first);
    hak_free(second);
    CHECK(count_at_peak(1000) == 1 && count_at_peak(2000) == 0 && count_at_peak(2500) == 1);
    CHECK(profile_totals.peak_weight == 3500);
}

static void lifetimes_are_counted(void)
{
    static const uint64_t lifetimes[LIFETIMES] = {0, 5, 10, 999, 1000, 99999, 999999, 10000000};
    profile_begin(1);
    for (volatile int i = 0; i < LIFETIMES; i++) {
        fake_clock_set(5000);
        void *block = caller(64);
        fake_clock_set(5000 + lifetimes[i]);
        hak_free(block);
    }
    struct site site;
    sites_copy(0, &site);
    for (int i = 0; i < LIFETIMES; i++)
        CHECK(site.lifetimes[i] == 1);
}

static void starts_and_stops(void)
{
    CHECK(hak_profile_stop() == EALREADY);
    CHECK(hak_profile_start(((size_t)1 << 40) + 1) == EINVAL);
    CHECK(hak_profile_start(0) == 0);
    CHECK(profile_totals.rate == 512 << 10 && profile_runs());
    CHECK(hak_profile_start(0) == EALREADY);
    CHECK(hak_profile_stop() == 0);
    CHECK(hak_profile_stop() == EALREADY);
    profile_begin(1);
    void *before = hak_malloc(100);
    CHECK(is_sampled(before));
    CHECK(hak_profile_stop() == 0 && !profile_runs());
    void *block = hak_malloc(100);
    CHECK(!is_sampled(block) && profile_totals.live.count == 1);
    /* Another profile knows nothing of what is from before. */
    profile_begin(1);
    CHECK(profile_totals.live.count == 0 && profile_totals.sites == 0);
    hak_free(before);
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0);
    hak_free(hak_malloc(200));
    CHECK(profile_totals.allocated.count == 1);
}

static void frees_after_the_end_are_counted(void)
{
    profile_begin(1);
    void *small = hak_malloc(100);
    void *large = hak_malloc(100000);
    CHECK(hak_profile_stop() == 0);
    hak_free(small);
    CHECK(profile_totals.live.count == 1);
    large = hak_realloc(large, 200000);
    CHECK(profile_totals.live.bytes == 200000);
    hak_free(large);
    CHECK(profile_totals.live.count == 0);
}

static void check_mode_comes_first(void)
{
    profile_begin(1);
    void *small = hak_malloc(100);
    void *large = hak_malloc(100000);
    CHECK(is_sampled(small));
    CHECK(hak_check_start() == 0);
    CHECK(!is_sampled(hak_malloc(100)));
    small = hak_realloc(small, 5000);
    CHECK(!is_sampled(small));
    hak_free(small);
    hak_free(large);
    CHECK(profile_totals.live.count == 0);
    CHECK(hak_profile_stop() == 0);
    CHECK(hak_profile_start(1) == ENOTSUP);
}

/* ---- Memory. */

static void memory_is_bounded(void)
{
    enum { BLOCKS = 100000 };
    static char *blocks[BLOCKS];
    profile_bytes_most = 1 << 20;
    profile_begin(1);
    int sampled = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(40);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 3, 40);
        sampled += is_sampled(blocks[i]);
    }
    CHECK(profile_bytes() <= 1 << 20);
    CHECK(sampled > 1000 && sampled < BLOCKS);
    CHECK(profile_totals.dropped == (uint64_t)(BLOCKS - sampled));
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    /* There is room again. */
    CHECK(is_sampled(hak_malloc(40)));
}

static void lives_without_memory(void)
{
    heap_own();
    fake_os_refuse(FAKE_RESERVE | FAKE_COMMIT, 1, FAKE_EVERY);
    while (meta_alloc(64 << 10) != NULL) /* what the metadata have left */
        ;
    CHECK(hak_profile_start(1) == ENOMEM && !profile_runs());
    fake_os_obey();
    CHECK(hak_profile_start(1) == 0);
}

static void lives_with_little_memory(void)
{
    static void *blocks[50000];
    enum { BLOCKS = sizeof blocks / sizeof blocks[0] };
    profile_begin(1);
    fake_os_refuse_some(FAKE_ALL & ~(unsigned)FAKE_RANDOM, 2, 77);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = hak_malloc(1 + i % 700 * (i % 100 == 0 ? 100 : 1));
        for (size_t i = 0; i < BLOCKS; i++)
            hak_free(blocks[i]);
    }
    fake_os_obey();
    CHECK(profile_totals.live.count == 0);
}

/* One empty slab of a class is kept. */
static void empty_slabs_go_back(void)
{
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    profile_begin(1);
    struct span_stats before;
    struct span_stats after;
    span_stats(&before);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = hak_malloc(1000);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    span_stats(&after);
    CHECK(after.used_bytes <= before.used_bytes + 8 * UNIT_SIZE);
}

/* ---- Threads, forks, signals. */

enum { THREADS = 6, SLOTS = 512 };
static void *volatile slots[SLOTS];
static pthread_key_t late_key;

static void free_late(void *value)
{
    if (value == &late_key)
        return;
    hak_free(value);
    hak_free(hak_malloc(100));
}

static void *trade(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    CHECK(pthread_setspecific(late_key, hak_malloc(48)) == 0);
    for (size_t i = 0; i < scaled_work(100000); i++) {
        size_t size = random_below(&seed, 50) == 0 ? random_below(&seed, 200000) : random_below(&seed, 500);
        hak_free(__atomic_exchange_n(&slots[random_below(&seed, SLOTS)], hak_malloc(size), __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    CHECK(pthread_key_create(&late_key, free_late) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, trade, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++)
        hak_free(slots[i]);
}

static void is_for_many_threads(void)
{
    profile_begin(1000);
    run_threads();
    CHECK(profile_totals.live.count == 0 && profile_totals.live_weight == 0 && slabs_counts().blocks == 0);
    CHECK(profile_totals.allocated.count > 1000);
}

static uint32_t ended;

static void *allocate_on(void *unused)
{
    while (!__atomic_load_n(&ended, __ATOMIC_RELAXED))
        hak_free(hak_malloc(100));
    return unused;
}

static void survives_forks(void)
{
    pthread_t threads[2];
    profile_begin(1);
    void *small = hak_malloc(100);
    void *large = hak_malloc(100000);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_on, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            hak_free(small);
            hak_free(large);
            hak_free(hak_malloc(64));
            CHECK(is_sampled(hak_malloc(64)));
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(profile_totals.live.count == 2);
    hak_free(small);
    hak_free(large);
}

static void *volatile handed;

static void handle(int number)
{
    int saved = errno;
    (void)number;
    hak_free(__atomic_exchange_n(&handed, NULL, __ATOMIC_RELAXED));
    hak_free(hak_malloc(100)); /* NULL, if this thread holds a lock */
    errno = saved;
}

static void *send_signals(void *to)
{
    while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
        CHECK(pthread_kill(*(pthread_t *)to, SIGUSR1) == 0);
        usleep(20);
    }
    return NULL;
}

static void handlers_may_free_sampled_blocks(void)
{
    pthread_t sender;
    pthread_t self = pthread_self();
    profile_begin(1);
    CHECK(signal(SIGUSR1, handle) != SIG_ERR);
    CHECK(pthread_create(&sender, NULL, send_signals, &self) == 0);
    for (size_t i = 0; i < scaled_work(300000); i++) {
        void *block = hak_malloc(64);
        CHECK(block != NULL);
        hak_free(__atomic_exchange_n(&handed, block, __ATOMIC_RELAXED));
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(sender, NULL) == 0);
    hak_free(handed);
    hak_free(hak_malloc(64));
    CHECK(profile_totals.live.count == 0 && slabs_counts().blocks == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(balanced_loops_are_estimated_rightly),
        UNIT_TEST(patterns_are_estimated_rightly),
        UNIT_TEST(live_sets_are_estimated_rightly),
        UNIT_TEST(growing_blocks_are_estimated_rightly),
        UNIT_TEST(serves_each_size),
        UNIT_TEST(serves_each_alignment),
        UNIT_TEST(zeroes_and_resizes),
        UNIT_TEST(notes_the_size_of_large_blocks),
        UNIT_TEST(misuse_is_reported),
        UNIT_TEST(stacks_begin_with_the_programs_call),
        UNIT_TEST(sites_are_stacks_and_sizes),
        UNIT_TEST(peaks_are_of_one_moment),
        UNIT_TEST(lifetimes_are_counted),
        UNIT_TEST(starts_and_stops),
        UNIT_TEST(frees_after_the_end_are_counted),
        UNIT_TEST(check_mode_comes_first),
        UNIT_TEST(memory_is_bounded),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(lives_with_little_memory),
        UNIT_TEST(empty_slabs_go_back),
        UNIT_TEST(is_for_many_threads),
        UNIT_TEST(survives_forks),
        UNIT_TEST(handlers_may_free_sampled_blocks),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
