/* heap/freeze.h under load: threads allocate, verify, exchange and free blocks in the hot functions while
 * another empties their magazines again and again. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "api/hot.h"
#include "api/stats.h"
#include "heap/freeze.h"
#include "heaps.h"
#include "process.h"
#include "random.h"
#include "scale.h"
#include "worker.h"

enum { OWNERS = 2, BLOCKS = 800, SHARED = 64, MILLISECONDS = 4000, WANTED = 100, PATIENCE_MS = 60000, MOST = 600 };

/* In front of each block, and its address at the end. */
struct header {
    uint64_t bytes;
    uint64_t mark;
};

static atomic_bool stop;
static _Atomic(struct header *) shared[SHARED];
static uint64_t seeds[OWNERS] = {11, 12};
static struct heap *heaps[OWNERS];

static struct header *make(uint64_t *seed)
{
    size_t bytes = sizeof(struct header) + 8 + random_below(seed, MOST);
    struct header *block = hot_malloc(bytes);
    CHECK(block != NULL);
    CHECK((uintptr_t)block % 16 == 0);
    *block = (struct header){bytes, (uintptr_t)block ^ bytes};
    memcpy((char *)block + bytes - 8, &block, 8);
    return block;
}

static void end(struct header *block)
{
    struct header *self;
    CHECK(block->mark == ((uintptr_t)block ^ block->bytes));
    memcpy(&self, (char *)block + block->bytes - 8, 8);
    CHECK(self == block);
    block->mark = 0;
    hot_free(block);
}

/* Now and then it sleeps, so that the thief finds it outside the door and in all its operations. */
static void hammer(void *argument)
{
    uint64_t *seed = argument;
    static _Thread_local struct header *blocks[BLOCKS];
    for (unsigned i = 0; !stop; i++) {
        struct header **block = &blocks[random_below(seed, BLOCKS)];
        if (*block == NULL)
            *block = make(seed);
        else if (random_below(seed, 16) == 0)
            *block = atomic_exchange(&shared[random_below(seed, SHARED)], *block);
        else {
            end(*block);
            *block = NULL;
        }
        if (i % 5000 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i] != NULL)
            end(blocks[i]);
}

static void tell_heap(void *out)
{
    *(struct heap **)out = heap_own();
}

static void check_nothing_is_lost(void)
{
    for (int i = 0; i < 4; i++)
        hak_malloc_trim(0);
    struct hak_stats stats;
    stats_read(&stats);
    CHECK(stats.small_blocks == 0);
    CHECK(stats.cached_bytes == 0);
    CHECK(span_used_bytes() == 0);
}

static void owners_and_a_thief(void)
{
    struct worker workers[OWNERS];
    heap_own();
    for (int i = 0; i < OWNERS; i++) {
        worker_start(&workers[i]);
        worker_run(&workers[i], tell_heap, &heaps[i]);
        worker_begin(&workers[i], hammer, &seeds[i]);
    }
    size_t frozen = 0;
    size_t taken = 0;
    uint64_t begin_ms = process_now_ms();
    uint64_t end_ms = begin_ms + scaled_work(MILLISECONDS);
    for (unsigned i = 0; process_now_ms() < end_ms || frozen < WANTED || taken < WANTED; i++) {
        CHECK(process_now_ms() < begin_ms + PATIENCE_MS);
        struct heap *heap = heaps[i % OWNERS];
        if (freeze_begin(heap)) {
            frozen++;
            taken += freeze_empty(heap);
            freeze_end(heap);
        }
        if (i % 64 == 0)
            sched_yield();
    }
    stop = true;
    for (int i = 0; i < OWNERS; i++)
        worker_wait(&workers[i]);
    for (int i = 0; i < SHARED; i++)
        if (shared[i] != NULL)
            end(shared[i]);
    for (int i = 0; i < OWNERS; i++)
        worker_stop(&workers[i]);
    check_nothing_is_lost();
}

/* Leaves blocks to be freed by others, and ends at once: with its magazines full, or emptied by the thief. */
static void *live_briefly(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    struct header *blocks[100];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            blocks[i] = make(&seed);
        for (int i = 0; i < 100; i++) {
            struct header *block = blocks[i];
            if (i % 4 == 0)
                block = atomic_exchange(&shared[random_below(&seed, SHARED)], block);
            if (block != NULL)
                end(block);
        }
        if (round == 0)
            sched_yield();
    }
    return NULL;
}

static void trim(void *unused)
{
    (void)unused;
    while (!stop)
        hak_malloc_trim(0);
}

static void short_threads_and_a_trimmer(void)
{
    enum { AT_ONCE = 4 };
    struct worker trimmer;
    heap_own();
    worker_start(&trimmer);
    worker_begin(&trimmer, trim, NULL);
    uint64_t end_ms = process_now_ms() + scaled_work(MILLISECONDS);
    for (uintptr_t i = 1; process_now_ms() < end_ms; i++) {
        pthread_t threads[AT_ONCE];
        for (uintptr_t j = 0; j < AT_ONCE; j++)
            CHECK(pthread_create(&threads[j], NULL, live_briefly, (void *)(i * AT_ONCE + j)) == 0);
        for (int j = 0; j < AT_ONCE; j++)
            CHECK(pthread_join(threads[j], NULL) == 0);
    }
    stop = true;
    worker_wait(&trimmer);
    worker_stop(&trimmer);
    for (int i = 0; i < SHARED; i++)
        if (shared[i] != NULL)
            end(shared[i]);
    check_nothing_is_lost();
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT_TEST(owners_and_a_thief), UNIT_TEST(short_threads_and_a_trimmer)};
    return cmocka_run_group_tests_name("freeze_stress", tests, NULL, NULL);
}
