/* observe/profile.h: that memory is bounded, and may run out; among threads, forks and signals. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/meta.h"
#include "fake_os.h"
#include "heaps.h"
#include "observe/profile_slabs.h"
#include "profiles.h"
#include "random.h"
#include "scale.h"

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
        UNIT_TEST(memory_is_bounded),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(lives_with_little_memory),
        UNIT_TEST(empty_slabs_go_back),
        UNIT_TEST(is_for_many_threads),
        UNIT_TEST(survives_forks),
        UNIT_TEST(handlers_may_free_sampled_blocks),
    };
    return cmocka_run_group_tests_name("profile_load", tests, NULL, NULL);
}
