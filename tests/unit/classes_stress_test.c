/* heap/classes.h: threads that allocate, send and free while classes come, go and become others. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "config/policy.h"
#include "heap/classes.h"
#include "heap/heartbeat.h"
#include "heap/orphan.h"
#include "heaps.h"
#include "random.h"
#include "scale.h"

enum { THREADS = 3, BLOCKS = 300, SHARED = 64 };

struct header {
    uint32_t bytes;
    uint32_t mark;
};

static atomic_int at_work = THREADS;
static _Atomic(struct header *) shared[SHARED];

static struct header *make(uint64_t *seed)
{
    static const size_t favourites[] = {144, 272, 1040, 1104, 1200, 2064, 5200, 9000, 16500};
    size_t bytes = favourites[random_below(seed, sizeof favourites / sizeof favourites[0])] - random_below(seed, 100);
    struct header *block = random_below(seed, 10) == 0 ? orphan_malloc(bytes) : hak_malloc(bytes);
    CHECK(block != NULL && hak_malloc_usable_size(block) >= bytes);
    *block = (struct header){(uint32_t)bytes, (uint32_t)(uintptr_t)block};
    memset(block + 1, (int)bytes, bytes - sizeof *block);
    return block;
}

static void end(struct header *block)
{
    const unsigned char *data = (const unsigned char *)(block + 1);
    CHECK(block->mark == (uint32_t)(uintptr_t)block);
    CHECK(data[0] == (block->bytes & 255) && data[block->bytes - sizeof *block - 1] == (block->bytes & 255));
    block->mark = 0;
    hak_free(block);
}

/* Not for long: heaps are lent and adopted from, too. */
static void *work(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    struct header *blocks[BLOCKS] = {0};
    for (size_t i = 0; i < 20000; i++) {
        struct header **block = &blocks[random_below(&seed, BLOCKS)];
        if (*block == NULL) {
            *block = make(&seed);
        } else if (random_below(&seed, 8) == 0) {
            *block = atomic_exchange(&shared[random_below(&seed, SHARED)], *block);
        } else {
            end(*block);
            *block = NULL;
        }
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i] != NULL)
            end(blocks[i]);
    return NULL;
}

static void *keep_working(void *argument)
{
    for (size_t round = 0; round < scaled_work(100); round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, (void *)((uintptr_t)argument + 100 * round)) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    at_work--;
    return NULL;
}

static void threads_meet_changes(void)
{
    enum { OPEN = 6 };
    static const size_t sizes[] = {144, 272, 1040, 1056, 1104, 1200, 2064, 5136, 5200, 9008, 16400, 16512};
    pthread_t threads[THREADS];
    unsigned open_ids[OPEN] = {0};
    uint64_t seed = 77;
    unsigned redefined = 0;
    size_t was[SIZE_CLASSES] = {0};
    policy.heartbeat_bytes = 1 << 16;
    heap_own();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_working, (void *)(i + 1)) == 0);
    for (size_t i = 0; at_work > 0; i++) {
        unsigned *id = &open_ids[random_below(&seed, OPEN)];
        if (*id != 0) {
            classes_close(*id);
            *id = 0;
        } else {
            size_t size = sizes[random_below(&seed, sizeof sizes / sizeof sizes[0])];
            unsigned opened = classes_open(size);
            if (opened < SIZE_CLASSES) {
                redefined += was[opened] != 0 && was[opened] != size;
                was[opened] = size;
                *id = opened;
            }
        }
        classes_reclaim_one();
        if (i % 16 == 0)
            hak_free(hak_malloc(1 << 15));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        if (shared[i] != NULL)
            end(shared[i]);
    CHECK(redefined > 0);
    for (int i = 0; i < OPEN; i++)
        if (open_ids[i] != 0)
            classes_close(open_ids[i]);
    hak_malloc_trim(0);
    heartbeat(heap_own());
    for (unsigned id = SIZE_CLASSES_FIXED; id < SIZE_CLASSES; id++)
        classes_reclaim_one();
    CHECK(classes_defined == 0);
    for (size_t size = 1; size <= SMALL_MAX; size++)
        CHECK(size_class_of(size) == size_class_fixed(size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(threads_meet_changes),
    };
    return cmocka_run_group_tests_name("classes_stress", tests, NULL, NULL);
}
