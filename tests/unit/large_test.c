/* large/large.h: a model with contents, refusals, verdicts. */
#include "unit.h"

#include <string.h>
#include <sys/resource.h>

#include "arena/arena.h"
#include "config/policy.h"
#include "fake_os.h"
#include "large/bigcache.h"
#include "large/large.h"
#include "large/site.h"
#include "larges.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "span/span.h"
#include "words.h"

enum { BLOCKS = 40, STEPS = 20000 };

struct block {
    char *at;
    size_t bytes; /* as asked for */
    uint64_t mark;
};

static struct block blocks[BLOCKS];
static uint64_t seed = 8;

static size_t random_bytes(void)
{
    size_t most = (size_t)1 << (16 + random_below(&seed, 7));
    return SMALL_MAX + 1 + random_below(&seed, most);
}

static void model_alloc(struct block *block)
{
    size_t align = random_below(&seed, 4) == 0 ? (size_t)1 << (12 + random_below(&seed, 11)) : 1;
    bool zero = false;
    block->bytes = random_bytes();
    block->mark = random_next(&seed);
    block->at = large_alloc(block->bytes, align, &zero);
    CHECK(block->at != NULL);
    CHECK((uintptr_t)block->at % max_size(align, UNIT_SIZE) == 0);
    struct large *record = large_find(block->at);
    CHECK(record != NULL && record->bytes >= block->bytes && record->bytes < block->bytes + 4096 + 1);
    if (zero)
        check_zero(block->at, record->bytes);
    write_words(block->at, 0, block->bytes, block->mark);
}

static void model_resize(struct block *block)
{
    size_t bytes = random_bytes();
    size_t kept = min_size(bytes, block->bytes);
    struct large *record = large_find(block->at);
    CHECK(record != NULL);
    if (random_below(&seed, 4) == 0)
        fake_os_refuse(FAKE_MOVE | FAKE_REFILL_HOLE | FAKE_RENEW, 1 + random_below(&seed, 2), 1);
    char *at = large_resize(record, bytes);
    fake_os_obey();
    if (at == NULL) {
        CHECK(large_find(block->at) == record);
        check_words(block->at, block->bytes, block->mark);
        return;
    }
    CHECK(large_find(at) == record);
    CHECK(at == block->at || large_find(block->at) == NULL);
    CHECK(record->bytes >= bytes);
    check_words(at, kept, block->mark);
    write_words(at, kept, bytes, block->mark);
    block->at = at;
    block->bytes = bytes;
}

static void model_free(struct block *block)
{
    check_words(block->at, block->bytes, block->mark);
    size_t usable = large_find(block->at)->bytes;
    struct large_freed freed;
    CHECK(large_free(block->at, NULL, &freed) == LARGE_FINE && freed.bytes == usable);
    CHECK(large_find(block->at) == NULL);
    block->at = NULL;
}

static void check_model_stats(void)
{
    struct large_stats stats;
    size_t live = 0;
    size_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].at == NULL)
            continue;
        live++;
        bytes += large_find(blocks[i].at)->bytes;
    }
    large_stats(&stats);
    CHECK(stats.live_blocks == live);
    CHECK(stats.live_bytes == bytes);
    CHECK(bigcache_bytes() <= policy.bigcache_bytes);
}

static void follows_a_model(void)
{
    large_init();
    policy.bigcache_bytes = 16 * MIB;
    size_t steps = scaled_work(STEPS);
    for (size_t step = 0; step < steps; step++) {
        struct block *block = &blocks[random_below(&seed, BLOCKS)];
        if (block->at == NULL)
            model_alloc(block);
        else if (random_below(&seed, 2) == 0)
            model_resize(block);
        else
            model_free(block);
        if (step % 64 == 0)
            check_model_stats();
        if (step % 1000 == 0)
            span_purge_all();
    }
}

static void everything_goes_back(void)
{
    large_init();
    char *held[20];
    for (int i = 0; i < 20; i++)
        held[i] = large_take((size_t)(i + 1) * 100000);
    for (int i = 0; i < 20; i++)
        large_give(held[i]);
    large_evict_before(UINT64_MAX);
    CHECK(bigcache_bytes() == 0);
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == 0);
}

static void aligns_as_asked(void)
{
    large_init();
    size_t most = HAK_SANITIZED ? 64 * MIB : 4 * GIB;
    for (size_t align = 1; align <= most; align *= 2) {
        for (size_t bytes = 1; bytes <= 3 * MIB; bytes += MIB) {
            bool zero;
            char *at = large_alloc(bytes, align, &zero);
            CHECK(at != NULL);
            CHECK((uintptr_t)at % align == 0);
            at[0] = at[bytes - 1] = 1;
        }
    }
}

static void impossible_sizes_are_null(void)
{
    large_init();
    bool zero;
    CHECK(large_alloc(PTRDIFF_MAX, 1, &zero) == NULL);
    CHECK(large_alloc((size_t)1 << 60, 1, &zero) == NULL);
    CHECK(large_alloc(1, (size_t)1 << 60, &zero) == NULL);
    CHECK(large_alloc(1, (size_t)1 << 61, &zero) == NULL);
    char *at = large_take(100000);
    CHECK(large_resize(large_find(at), PTRDIFF_MAX) == NULL);
    CHECK(large_find(at) != NULL);
}

/* Of a GiB and more the kernel is asked; what there is has been asked for, and is not asked about again. */
static void what_the_kernel_would_not_promise_is_null(void)
{
    large_init();
    bool zero;
    char *at = large_take(100 * MIB);
    write_words(at, 0, 100 * MIB, 3);
    fake_os_refuse(FAKE_BEYOND, 1, FAKE_EVERY);
    CHECK(large_alloc(GIB, 1, &zero) == NULL && fake_os_refused() == 1);
    CHECK(large_resize(large_find(at), GIB) == NULL && fake_os_refused() == 2);
    check_words(at, 100 * MIB, 3);
    char *less = large_alloc(GIB - UNIT_SIZE * 8, 1, &zero);
    CHECK(less != NULL && fake_os_refused() == 2);
    CHECK(large_resize(large_find(less), 100 * MIB) == less && fake_os_refused() == 2);
    CHECK(large_alloc(1, GIB, &zero) == NULL && fake_os_refused() == 3); /* what an alignment skips has records */
    CHECK(large_alloc(SIZE_MAX / 2, SIZE_MAX / 2 + 1, &zero) == NULL);
    fake_os_obey();
    char *more = large_alloc(GIB, 1, &zero);
    CHECK(more != NULL);
    fake_os_refuse(FAKE_BEYOND, 1, FAKE_EVERY);
    CHECK(large_resize(large_find(more), GIB / 2) == more && fake_os_refused() == 0);
    fake_os_obey();
}

/* Whoever counts a block in need not be who counts it out. */
static void live_blocks_are_counted_in_sum(void)
{
    large_init();
    struct large_live *counters[] = {NULL, large_live_of(0), large_live_of(LARGE_LIVE_OWN - 1), large_live_of(LARGE_LIVE_OWN)};
    enum { COUNTERS = sizeof counters / sizeof counters[0] };
    CHECK(counters[1] != NULL && counters[2] != NULL && counters[1] != counters[2] && counters[3] == NULL);
    struct large_stats stats;
    for (size_t in = 0; in < COUNTERS; in++) {
        for (size_t out = 0; out < COUNTERS; out++) {
            bool zero;
            struct large_freed freed;
            char *at = large_alloc_at(100000, 1, SITE_NONE, counters[in], &zero);
            large_stats(&stats);
            CHECK(stats.live_blocks == 1 && stats.live_bytes == large_find(at)->bytes);
            CHECK(large_resize(large_find(at), 90000) == at);
            CHECK(large_free(at, counters[out], &freed) == LARGE_FINE);
            large_stats(&stats);
            CHECK(stats.live_blocks == 0 && stats.live_bytes == 0);
        }
    }
}

static void faults_get_verdicts(void)
{
    large_init();
    char *at = large_take(MIB);
    CHECK(large_try_give(at + 8) == LARGE_NOT_A_BLOCK);
    CHECK(large_try_give(at + UNIT_SIZE - 8) == LARGE_NOT_A_BLOCK);
    CHECK(large_find(at + 8) == NULL);
    CHECK(large_find(at + UNIT_SIZE) == NULL);
    CHECK(arena_tag(at + UNIT_SIZE) == TAG_NONE);
    CHECK(large_try_give(at) == LARGE_FINE);
    CHECK(arena_tag(at) == TAG_LARGE_KEPT);
    CHECK(large_try_give(at) == LARGE_DOUBLE_FREE);
    CHECK(large_find(at) == NULL);
}

static long page_faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

/* Of what is noted of each unit, nothing is read or written but at its start. */
static void sparse_blocks_touch_little(void)
{
    enum { GIBS = 4, FAULTS_MOST = GIBS * GIB / UNIT_SIZE * sizeof(uintptr_t) / (4 * KIB) };
    if (HAK_TSAN || process_is_emulated()) {
        CANNOT_TRY("page faults are those of ThreadSanitizer, or of the emulator, too");
        return;
    }
    large_init();
    long before = page_faults();
    char *at = large_take(GIBS * GIB);
    CHECK(page_faults() - before < FAULTS_MOST);
    large_give(at);
}

static void shrinks_and_grows_in_place(void)
{
    large_init();
    char *at = large_take(MIB);
    write_words(at, 0, MIB, 5);
    struct large *block = large_find(at);
    CHECK(large_resize(block, 600000) == at);
    CHECK(block->bytes == align_up(600000, 4096));
    CHECK(large_resize(block, MIB) == at);
    check_words(at, 600000, 5);
    CHECK(fake_os_made(FAKE_MOVE) == 0);
}

static void refused_memory_is_null(void)
{
    large_init();
    bool zero;
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    CHECK(large_alloc(100000, 1, &zero) == NULL);
    fake_os_obey();
    struct large_stats stats;
    large_stats(&stats);
    CHECK(stats.live_blocks == 0 && span_used_bytes() == 0);
    large_take(100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_a_model),
        UNIT_TEST(everything_goes_back),
        UNIT_TEST(aligns_as_asked),
        UNIT_TEST(impossible_sizes_are_null),
        UNIT_TEST(what_the_kernel_would_not_promise_is_null),
        UNIT_TEST(live_blocks_are_counted_in_sum),
        UNIT_TEST(faults_get_verdicts),
        UNIT_TEST(sparse_blocks_touch_little),
        UNIT_TEST(shrinks_and_grows_in_place),
        UNIT_TEST(refused_memory_is_null),
    };
    return cmocka_run_group_tests_name("large", tests, NULL, NULL);
}
