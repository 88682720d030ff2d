/* check/check.h: what check mode serves are good blocks under threads, forks and refusals. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "check_mode.h"
#include "fake_os.h"
#include "hakmem.h"
#include "scale.h"

enum { BLOCKS = 200, THREADS = 8 };

/* ---- Threads and forks. */

static void *volatile exchange[64];
static bool goes_on; /* until the test has seen enough */

static void *swap_blocks(void *argument)
{
    unsigned random = (unsigned)(uintptr_t)argument;
    for (size_t i = 0; i < scaled_work(20000) || load_relaxed(&goes_on); i++) {
        random = random * 1103515245u + 12345u;
        size_t size = (random >> 8) % ((random & 0x8000) != 0 ? 200 : 20000);
        char *block = hak_malloc(size);
        CHECK(block != NULL);
        memset(block, (int)size, size);
        char *other = __atomic_exchange_n(&exchange[(random >> 16) % 64], block, __ATOMIC_ACQ_REL);
        if (other != NULL) {
            size_t bytes = hak_malloc_usable_size(other);
            for (size_t j = 0; j < bytes; j += 97)
                CHECK(other[j] == (char)bytes);
            hak_free(other);
        }
        if (i % 2000 == 1999)
            CHECK(hak_check() > 0);
    }
    return NULL;
}

static void serves_threads(void)
{
    pthread_t thread[THREADS];
    start(CHECK_ALL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, swap_blocks, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(run_counts().blocks <= 64 + 4 * THREADS);
}

static void serves_forked_children(void)
{
    pthread_t thread;
    start(CHECK_ALL);
    goes_on = true;
    CHECK(pthread_create(&thread, NULL, swap_blocks, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int j = 0; j < 100; j++)
                hak_free(hak_malloc((size_t)j * 50));
            (void)hak_check();
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    store_relaxed(&goes_on, false);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- Without memory. */

static void lives_without_memory(void)
{
    void *held[BLOCKS];
    start(CHECK_ALL);
    hak_free(hak_malloc(1));
    for (uint64_t seed = 1; seed < 20; seed++) {
        int count = 0;
        fake_os_refuse_some(FAKE_ALL & ~(FAKE_BARRIER | FAKE_SET_BIT | FAKE_HOLDS), 2, seed);
        for (int i = 0; i < 10 * BLOCKS; i++) {
            char *block = hak_malloc((size_t)i * 37);
            if (block == NULL)
                continue;
            memset(block, 1, (size_t)i * 37);
            if (count < BLOCKS)
                held[count++] = block;
            else
                hak_free(block);
        }
        while (count > 0)
            hak_free(held[--count]);
        fake_os_obey();
    }
    CHECK(hak_check() > 0);
}

/* What waits is given up before memory is refused. */
static void gives_up_quarantine_at_the_limit(void)
{
    start(CHECK_ALL);
    CHECK(hak_set_limit(0, 8 * MIB) == 0);
    for (int i = 0; i < 100000; i++) {
        char *block = hak_malloc(1000);
        CHECK(block != NULL);
        hak_free(block);
    }
    CHECK(hak_malloc(100 * MIB) == NULL && errno == ENOMEM);
}

/* Where nothing more can be closed: what is freed is cleared, and nobody takes that for a write. */
static void what_cannot_be_closed_is_not_reported(void)
{
    start(CHECK_ALL);
    char *block = hak_malloc(400000);
    fake_os_refuse(FAKE_CLOSE, 1, FAKE_EVERY);
    hak_free(block);
    CHECK(fake_os_refused() > 0 && hak_check() > 0);
    hak_malloc_trim(0); /* ends the wait */
    fake_os_obey();
    CHECK(hak_malloc(400000) != NULL);
}

static void refuses_what_cannot_be(void)
{
    start(CHECK_ALL);
    CHECK(hak_malloc(PTRDIFF_MAX) == NULL && errno == ENOMEM);
    errno = 0;
    volatile size_t most = SIZE_MAX;
    CHECK(hak_malloc(most) == NULL && errno == ENOMEM);
    void *block = hak_malloc(10);
    errno = 0;
    CHECK(hak_realloc(block, PTRDIFF_MAX) == NULL && errno == ENOMEM);
    CHECK(is_checked(block));
    fake_os_refuse(FAKE_BEYOND, 1, FAKE_EVERY);
    errno = 0;
    CHECK(hak_malloc(GIB) == NULL && errno == ENOMEM);
    CHECK(fake_os_refused() > 0);
    fake_os_obey();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(serves_threads),
        UNIT_TEST(serves_forked_children),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(gives_up_quarantine_at_the_limit),
        UNIT_TEST(what_cannot_be_closed_is_not_reported),
        UNIT_TEST(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests_name("check_load", tests, NULL, NULL);
}
