/* check/guard.h: which blocks are guarded, and that they are good blocks. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "guards.h"

/* How many of so many blocks of 64 bytes are guarded, each freed before the next. */
static unsigned count_guarded(int blocks)
{
    unsigned found = 0;
    for (int i = 0; i < blocks; i++) {
        void *block = hak_malloc(64);
        found += is_guarded(block);
        hak_free(block);
    }
    return found;
}

static void samples_by_bytes(void)
{
    guard_each(64 << 10);
    unsigned found = count_guarded(1 << 20);
    CHECK(found > 1000 && found <= 1024);
}

/* Between heartbeats chance decides. */
static void samples_rarely(void)
{
    policy.heartbeat_bytes = 64 << 10;
    guard_each(1 << 20);
    unsigned found = count_guarded(1 << 23);
    /* 512 are to be expected, of 8,192 heartbeats: the deviation is 22. */
    CHECK(found > 512 - 6 * 22 && found < 512 + 6 * 22);
}

static void samples_nothing_unless_asked(void)
{
    CHECK(count_guarded(1 << 20) == 0);
}

static void serves_good_blocks(void)
{
    guard_each(1);
    for (size_t size = 1; size <= min_size(os_page_size(), SMALL_MAX); size = size < 40 ? size + 1 : size * 5 / 4) {
        char *block = guarded(size);
        CHECK((uintptr_t)block % (size < 16 ? 8 : 16) == 0);
        CHECK(hak_malloc_usable_size(block) == size);
        memset(block, 1, size);
        hak_free(block);
    }
}

static void serves_aligned_blocks(void)
{
    guard_each(1);
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        int found = 0;
        for (int i = 0; i < GUARD_TRIES && found < 20; i++) {
            char *block = hak_aligned_alloc(alignment, 100);
            CHECK((uintptr_t)block % alignment == 0);
            CHECK(!is_guarded(block) || hak_malloc_usable_size(block) == 100);
            found += is_guarded(block);
            memset(block, 2, 100);
            hak_free(block);
        }
        CHECK(found == 20);
    }
}

static void is_zeroed_and_resized(void)
{
    int zeroed = 0;
    int resized = 0;
    guard_each(1);
    for (int i = 0; i < 1000; i++) {
        unsigned char *block = hak_calloc(7, 13);
        zeroed += is_guarded(block);
        for (size_t j = 0; j < 91; j++)
            CHECK(block[j] == 0);
        memset(block, i, 91);
        for (size_t size = 80; size < 9000; size = size * 9 / 8) { /* with room to grow, sometimes */
            block = hak_realloc(block, size);
            resized += is_guarded(block);
            CHECK(!is_guarded(block) || hak_malloc_usable_size(block) == max_size(size, 91));
            CHECK(block[0] == (unsigned char)i && block[79] == (unsigned char)i);
        }
        block = hak_realloc(block, 5);
        CHECK(block[4] == (unsigned char)i);
        hak_free(block);
    }
    CHECK(zeroed > 0 && resized > 0);
}

static void reuses_the_oldest(void)
{
    guard_each(1);
    char *held[GUARD_SLOTS];
    for (int i = 0; i < GUARD_SLOTS; i++)
        held[i] = guarded(32);
    for (int i = 0; i < 100; i++)
        CHECK(!is_guarded(hak_malloc(32)));
    for (int i = 0; i < GUARD_SLOTS; i++)
        hak_free(held[i]);
    for (int i = 0; i < GUARD_SLOTS; i++) {
        char *again = guarded(32);
        CHECK((uintptr_t)again / os_page_size() == (uintptr_t)held[i] / os_page_size());
    }
}

static void lives_without_memory(void)
{
    guard_each(1);
    hak_free(hak_malloc(1));
    fake_os_refuse(FAKE_RESERVE, 1, 1);
    for (int i = 0; i < 100; i++)
        CHECK(!is_guarded(hak_malloc(32)));
    fake_os_obey();
}

static void lives_without_pages(void)
{
    guard_each(1);
    hak_free(guarded(16));
    fake_os_refuse(FAKE_COMMIT, 1, FAKE_EVERY);
    for (int i = 0; i < 100; i++) {
        void *block = hak_malloc(16);
        CHECK(block != NULL && !is_guarded(block));
        hak_free(block);
    }
    fake_os_obey();
    hak_free(guarded(16));
}

/* ---- Threads and forks. */

enum { THREADS = 6, ROUNDS = 20000, SHARED = 64 };

static char *shared[SHARED];

/* Puts blocks where others take them, and frees what it finds there. */
static void *exchange(void *seed)
{
    uint64_t state = (uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = 8 + (state >> 40) % 200;
        char *block = hak_malloc(size);
        memset(block, (int)(size % 251), size);
        block[0] = (char)(size - 8);
        char *found = __atomic_exchange_n(&shared[(state >> 33) % SHARED], block, __ATOMIC_ACQ_REL);
        if (found == NULL)
            continue;
        size = 8 + (size_t)(unsigned char)found[0];
        for (size_t j = 1; j < size; j++)
            CHECK(found[j] == (char)(size % 251));
        hak_free(found);
    }
    return NULL;
}

static void is_for_many_threads(void)
{
    guard_each(1);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        hak_free(shared[i]);
}

static void survives_forks(void)
{
    guard_each(1);
    char *block = guarded(40);
    memset(block, 3, 40);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(block[39] == 3);
        hak_free(block);
        hak_free(guarded(50));
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(block[39] == 3);
    hak_free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(samples_by_bytes),
        UNIT_TEST(samples_rarely),
        UNIT_TEST(samples_nothing_unless_asked),
        UNIT_TEST(serves_good_blocks),
        UNIT_TEST(serves_aligned_blocks),
        UNIT_TEST(is_zeroed_and_resized),
        UNIT_TEST(reuses_the_oldest),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(lives_without_pages),
        UNIT_TEST(is_for_many_threads),
        UNIT_TEST(survives_forks),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
