/* heap/crowd.h: what a thread among many may cache, and that few threads ask nothing. */
#include "unit.h"

#include "config/policy.h"
#include "fake_os.h"
#include "heap/crowd.h"
#include "heap/fork.h"
#include "heap/life.h"
#include "heap/magazine.h"
#include "heaps.h"
#include "span/shards.h"

enum { THREADS = 40, PROCESSORS = 2, OF_PROCESSOR = 4 };

static struct view *words[THREADS];

/* As many threads as that, this one among them. */
static void make_threads(size_t count)
{
    heap_own();
    for (size_t i = 0; life_count() < count; i++)
        (void)heap_other(&words[i]);
    CHECK(life_count() == count);
}

static void few_threads_ask_nothing(void)
{
    fake_os_set_processors(1);
    make_threads(15);
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 0 && crowd_share(MIB, 0) == MIB);
}

static void small_programs_ask_nothing(void)
{
    fake_os_set_processors(1);
    make_threads(THREADS);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 0 && crowd_share(MIB, 0) == MIB);
}

static void many_threads_share(void)
{
    fake_os_set_processors(PROCESSORS);
    make_threads(THREADS);
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    crowd_consider();
    CHECK(fake_os_processors_reads() == 1 && shards_count() == 1);
    size_t share = PROCESSORS * OF_PROCESSOR * MIB;
    CHECK(crowd_share(THREADS * MIB, 0) == share && crowd_share(THREADS * MIB, share + 1) == share + 1);
    CHECK(crowd_share(KIB, MIB) == KIB);
}

/* Those of threads that have bound themselves since. */
static void twice_as_many_threads_ask_again(void)
{
    fake_os_set_processors(1);
    make_threads(THREADS / 2);
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    CHECK(crowd_processors == 1);
    fake_os_set_processors(PROCESSORS);
    make_threads(THREADS - 1);
    crowd_consider();
    CHECK(crowd_processors == 1);
    make_threads(THREADS);
    crowd_consider();
    CHECK(crowd_processors == PROCESSORS);
}

static void more_threads_come(void)
{
    make_threads(THREADS);
    crowd_consider();
}

/* A fork drops the locks of as many shards as there were when it took them. */
static void nobody_asks_during_a_fork(void)
{
    fake_os_set_processors(PROCESSORS);
    make_threads(THREADS);
    fork_prepare();
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 0);
    fork_parent();
    crowd_consider();
    CHECK(fake_os_processors_reads() == 1);
}

/* os_processors is one thread's at a time. */
static void nobody_asks_while_another_does(void)
{
    fake_os_set_processors(PROCESSORS);
    CHECK(hak_malloc(64 * MIB) != NULL);
    make_threads(THREADS / 2 - 1);
    fake_os_during_processors(more_threads_come);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 1 && crowd_processors == PROCESSORS);
    fake_os_during_processors(NULL);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 2);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 2);
}

static void enough_processors_share_nothing(void)
{
    fake_os_set_processors(SIZE_MAX);
    make_threads(THREADS);
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    CHECK(fake_os_processors_reads() == 1 && crowd_share(3 * MIB, 0) == 3 * MIB);
}

static void many_processors_spread_them(void)
{
    fake_os_set_processors(32);
    make_threads(THREADS);
    CHECK(shards_count() == 1);
    CHECK(hak_malloc(64 * MIB) != NULL);
    crowd_consider();
    CHECK(shards_count() == 1 + 4);
}

/* What the magazines of a large heap may hold when they are used. */
static size_t cached_capacity(size_t processors)
{
    enum { BLOCKS = 4000 };
    static void *blocks[BLOCKS];
    fake_os_set_processors(processors);
    make_threads(THREADS);
    CHECK(hak_malloc(64 * MIB) != NULL);
    for (int i = 0; i < 20000; i++)
        CHECK(hak_malloc(2000) != NULL);
    crowd_consider();
    struct heap *heap = heap_own();
    for (size_t size = 64; size <= 8192; size += size / 4)
        for (int round = 0; round < 1000; round++) {
            int count = 1 + round * 64 * (int)KIB / 1000 / (int)size; /* a little more than there is room for */
            for (int i = 0; i < count; i++)
                blocks[i] = hak_malloc(size);
            for (int i = 0; i < count; i++)
                hak_free(blocks[i]);
        }
    return heap->capacity_bytes;
}

static void caches_grow_to_their_share(void)
{
    CHECK(cached_capacity(PROCESSORS) <= policy.thread_cache_bytes * PROCESSORS * OF_PROCESSOR / THREADS + 64 * KIB);
}

static void caches_of_few_grow_further(void)
{
    CHECK(cached_capacity(SIZE_MAX) > policy.thread_cache_bytes * PROCESSORS * OF_PROCESSOR / THREADS + 64 * KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(few_threads_ask_nothing),    UNIT_TEST(small_programs_ask_nothing),
        UNIT_TEST(many_threads_share),         UNIT_TEST(nobody_asks_during_a_fork),
        UNIT_TEST(nobody_asks_while_another_does),
        UNIT_TEST(twice_as_many_threads_ask_again),
        UNIT_TEST(enough_processors_share_nothing),
        UNIT_TEST(many_processors_spread_them), UNIT_TEST(caches_grow_to_their_share),
        UNIT_TEST(caches_of_few_grow_further),
    };
    return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
