/* check/check.h: what check mode serves are good blocks, and what it does with blocks from before; under load: check_load_test.c. What it
 * reports is tested where its users see it (tests/py/test_check.py). */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/bits.h"
#include "check/run.h"
#include "check_mode.h"
#include "child.h"
#include "config/size_class.h"
#include "fake_os.h"
#include "hakmem.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "os/os.h"
#include "spans.h"

enum { BLOCKS = 200, THREADS = 8 };

static void serves_each_size(void)
{
    start(CHECK_ALL);
    for (size_t size = 0; size < 1 << 20; size = size < 300 ? size + 1 : size * 9 / 8) {
        char *block = hak_malloc(size);
        CHECK(is_checked(block) && (uintptr_t)block % 16 == 0 && hak_malloc_usable_size(block) == size);
        memset(block, 1, size);
        hak_free(block);
    }
    CHECK(hak_check() > 0);
}

static void serves_each_alignment(void)
{
    start(CHECK_ALL);
    for (size_t alignment = 1; alignment <= 4 << 20; alignment *= 2) {
        for (size_t size = 1; size < 100000; size *= 7) {
            char *block = hak_aligned_alloc(alignment, size);
            CHECK(is_checked(block) && (uintptr_t)block % alignment == 0);
            memset(block, 2, size);
            hak_free(block);
        }
    }
    CHECK(hak_aligned_alloc(4 * GIB, 1) == NULL && errno == ENOMEM);
}

static void fills_what_is_new(void)
{
    start(CHECK_POISON);
    unsigned char *block = hak_malloc(1000);
    for (int i = 0; i < 1000; i++)
        CHECK(block[i] == 0xbe);
    block = hak_calloc(10, 100);
    for (int i = 0; i < 1000; i++)
        CHECK(block[i] == 0);
}

/* A table of which little is used takes little memory. */
static void leaves_large_zeroes_alone(void)
{
    const size_t size = 64 * MIB;
    start(CHECK_ALL);
    for (int i = 0; i < 3; i++) {
        char *block = hak_calloc(1, size);
        char *page = (char *)align_up((uintptr_t)block, os_page_size());
        CHECK(block != NULL && os_resident(page, size - os_page_size()) < MIB);
        CHECK(block[0] == 0 && block[size / 2] == 0 && block[size - 1] == 0);
        memset(block, 1, 2 * MIB);
        hak_free(block);
        hak_purge(HAK_PURGE_CACHED);
    }
    char *used = hak_malloc(100000);
    memset(used, 1, 100000);
    hak_free(used);
    used = hak_calloc(1, 100000);
    for (int i = 0; i < 100000; i++)
        CHECK(used[i] == 0);
}

/* Also where nothing waits; a small one's run, and a large one's units, keep what is in them until they are used again. */
static void fills_what_is_freed(void)
{
    start(CHECK_POISON);
    for (size_t size = 1000; size < 1000000; size *= 500) {
        void *volatile block = hak_malloc(size);
        memset(block, 0x41, size);
        const volatile unsigned char *freed = block;
        hak_free(block);
        for (int i = 0; i < 1000; i++)
            CHECK(freed[i] == 0xdf);
    }
}

static void keeps_content(void)
{
    start(CHECK_ALL);
    unsigned char *block = hak_malloc(10);
    memset(block, 7, 10);
    for (size_t size = 11; size < 1 << 21; size = size * 4 / 3) {
        unsigned char *moved = hak_realloc(block, size);
        CHECK((moved != block || size > 64 * KIB) && moved[0] == 7 && moved[9] == 7 && hak_malloc_usable_size(moved) == size);
        block = moved;
    }
    block = hak_realloc(block, 3);
    CHECK(block[2] == 7);
    CHECK(hak_realloc(block, 0) == NULL);
}

/* A large block that grows by little stays where it is, most of the time. */
static void grows_large_blocks_in_place(void)
{
    start(CHECK_ALL);
    size_t size = 100000;
    char *block = hak_malloc(size);
    memset(block, 7, size);
    int moves = 0;
    for (int i = 0; i < 20000; i++) {
        char *before = block;
        block = hak_realloc(block, size + 8);
        moves += block != before;
        CHECK(block[0] == 7 && block[size - 1] == 7 && (unsigned char)block[size] == 0xbe);
        memset(block + size, 7, 8);
        size += 8;
    }
    CHECK(moves > 0 && moves < 20 && hak_malloc_usable_size(block) == size && hak_check() > 0);
    CHECK(hak_realloc(block, size - 5) == block && run_counts().bytes == size - 5 && hak_check() > 0);
    /* Where little is left of it, its memory is not kept. */
    size_t left = size / 2 - 6;
    char *less = hak_realloc(block, left);
    CHECK(less != block && run_counts().bytes == left);
    block = less;
    hak_free(block);
    CHECK(run_counts().bytes == 0);
}

static void overflow_grown(uintptr_t size)
{
    start(CHECK_ALL);
    char *block = hak_realloc(hak_malloc(size), size + 8);
    ((volatile char *)block)[size + 8] = 1;
    hak_free(block);
}

/* Not used again as long as it may wait. */
static void keeps_freed_blocks(void)
{
    start(CHECK_ALL);
    void *freed = hak_malloc(48);
    hak_free(freed);
    for (int i = 0; i < 10000; i++) {
        void *block = hak_malloc(48);
        CHECK(block != freed);
        hak_free(block);
    }
    bool again = false;
    for (int i = 0; i < 1000000 && !again; i++) {
        void *block = hak_malloc(48);
        again = block == freed;
        hak_free(block);
    }
    CHECK(again);
}

static void come_and_go(size_t count, size_t size)
{
    void **blocks = malloc(count * sizeof *blocks);
    size_t before = span_used_bytes();
    CHECK(blocks != NULL);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = hak_malloc(size);
        CHECK(run_counts().blocks == count && run_counts().bytes == count * size);
        CHECK(span_used_bytes() >= before + count * size);
        for (size_t i = 0; i < count; i++)
            hak_free(blocks[i]);
        CHECK(run_counts().blocks == 0);
        CHECK(span_used_bytes() <= before + MIB); /* a run of small ones waits for the next */
    }
    free(blocks);
}

static void gives_units_back(void)
{
    start(CHECK_REDZONE);
    come_and_go(100000, 100);
    come_and_go(500, 100000);
    CHECK(hak_check() <= BLOCKS);
}

/* Nothing that is given back would help. */
static void what_can_never_be_served_ends_no_quarantine(void)
{
    start(CHECK_ALL);
    void *freed = hak_malloc(100);
    hak_free(freed);
    CHECK(run_find(freed)->state == CHECKED_FREED);
    fake_os_refuse(FAKE_BEYOND, 1, FAKE_EVERY);
    void *volatile none = hak_malloc((size_t)1 << 46);
    CHECK(none == NULL);
    CHECK(run_find(freed)->state == CHECKED_FREED);
}

/* Its pages are closed, and take no memory. */
static void a_large_block_waits_like_others(void)
{
    start(CHECK_ALL);
    void *small = hak_malloc(100);
    void *large = hak_malloc(300 * MIB);
    hak_free(small);
    hak_free(large);
    CHECK(run_find(small)->state == CHECKED_FREED && run_find(large)->state == CHECKED_FREED);
}

static void requests_without_an_alignment_are_charged(void)
{
    start(CHECK_REDZONE);
    hak_free(hak_malloc(1));
    uint64_t before = heap_requested(view_load()->heap);
    hak_free(hak_aligned_alloc(1, 100));
    hak_free(hak_malloc(1000));
    CHECK(heap_requested(view_load()->heap) == before + 1100);
}

/* ---- hak_check. */

enum place { INSIDE_FREED, BEFORE_LIVE, BEHIND_LIVE, NOWHERE };

static void write_and_check(uintptr_t place)
{
    start(CHECK_ALL);
    void *volatile block = hak_malloc(100);
    volatile char *bytes = block;
    if (place == INSIDE_FREED)
        hak_free(block);
    if (place != NOWHERE)
        bytes[place == INSIDE_FREED ? 10 : place == BEFORE_LIVE ? -1 : 100] = 1;
    CHECK(hak_check() > 0);
}

static void check_finds(enum place place, const char *kind)
{
    struct child child = child_run(write_and_check, place);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT);
    CHECK(strstr(child.output, kind) != NULL && strstr(child.output, "(found by hak_check, thread ") != NULL);
}

static void finds_what_was_written(void)
{
    check_finds(INSIDE_FREED, "ERROR: hakmem: heap-use-after-free on address ");
    check_finds(BEFORE_LIVE, "ERROR: hakmem: heap-buffer-underflow on address ");
    check_finds(BEHIND_LIVE, "ERROR: hakmem: heap-buffer-overflow on address ");
    struct child child = child_run(write_and_check, NOWHERE);
    CHECK(child.status == 0 && child.output[0] == '\0');
}

static void looks_at_nothing_unless_it_is_on(void)
{
    void *block = hak_malloc(100);
    CHECK(hak_check() == 0);
    hak_free(block);
}

/* ---- Started later: blocks from before. */

static void takes_old_blocks_back(void)
{
    void *old[BLOCKS];
    char *large = hak_malloc(1 << 20);
    for (int i = 0; i < BLOCKS; i++) {
        old[i] = hak_malloc(40);
        memset(old[i], i, 40);
    }
    hak_free(old[0]);
    CHECK(hak_check_start() == 0 && hak_check_start() == EALREADY);
    CHECK(!is_checked(old[1]) && is_checked(hak_malloc(40)));
    CHECK(hak_malloc_usable_size(old[1]) == 48);
    old[2] = hak_realloc(old[2], 100);
    CHECK(is_checked(old[2]) && *(char *)old[2] == 2);
    for (int i = 1; i < BLOCKS; i++)
        hak_free(old[i]);
    memset(large, 1, 1 << 20);
    hak_free(large);
}

static void may_be_asked_for_again(void)
{
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    CHECK(hak_check_start() == ENOMEM);
    fake_os_obey();
    CHECK(hak_check_start() == 0 && is_checked(hak_malloc(40)));
}

static void free_old_twice(uintptr_t between)
{
    void *block = hak_malloc(40);
    void *other = hak_malloc(40);
    CHECK(hak_check_start() == 0);
    hak_free(block);
    if (between)
        hak_free(other);
    hak_free(block);
}

static void free_cached_again(uintptr_t unused)
{
    (void)unused;
    void *block = hak_malloc(40);
    void *other = hak_malloc(40);
    hak_free(block);
    hak_free(other);
    CHECK(hak_check_start() == 0);
    hak_free(block);
}

static void check_aborts_saying(const char *text, void (*action)(uintptr_t value), uintptr_t value)
{
    struct child child = child_run(action, value);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT && strstr(child.output, text) != NULL);
}

static void old_blocks_are_verified_at_once(void)
{
    check_aborts_saying("ERROR: hakmem: double-free on address", free_old_twice, 0);
    check_aborts_saying("ERROR: hakmem: double-free on address", free_old_twice, 1);
    check_aborts_saying("ERROR: hakmem: double-free on address", free_cached_again, 0);
}

static void free_at_another_size(uintptr_t size)
{
    start(CHECK_ALL);
    hak_free_at(hak_malloc(size), size + 1, 1);
}

static void sizes_that_are_told_are_verified(void)
{
    check_aborts_saying("ERROR: hakmem: new-delete-type-mismatch on address", free_at_another_size, 100);
    check_aborts_saying("ERROR: hakmem: new-delete-type-mismatch on address", free_at_another_size, 100000);
}

static void zones_follow_the_end(void)
{
    check_aborts_saying("ERROR: hakmem: heap-buffer-overflow on address", overflow_grown, 100000);
}

struct shared {
    pthread_barrier_t barrier;
    void *old[THREADS];
};

static void *live_through_the_start(void *argument)
{
    struct shared *shared = argument;
    void *own = hak_malloc(100);
    hak_free(hak_malloc(100));
    pthread_barrier_wait(&shared->barrier); /* and here it starts */
    pthread_barrier_wait(&shared->barrier);
    hak_free(hak_malloc(60)); /* the first visit to the door */
    void *block = hak_malloc(100);
    CHECK(is_checked(block));
    hak_free(block);
    hak_free(own);
    return NULL;
}

static void all_threads_are_checked(void)
{
    struct shared shared;
    pthread_t thread[THREADS];
    pthread_barrier_init(&shared.barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, live_through_the_start, &shared) == 0);
    pthread_barrier_wait(&shared.barrier);
    CHECK(hak_check_start() == 0);
    pthread_barrier_wait(&shared.barrier);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(serves_each_size),
        UNIT_TEST(serves_each_alignment),
        UNIT_TEST(fills_what_is_new),
        UNIT_TEST(leaves_large_zeroes_alone),
        UNIT_TEST(fills_what_is_freed),
        UNIT_TEST(keeps_content),
        UNIT_TEST(grows_large_blocks_in_place),
        UNIT_TEST(sizes_that_are_told_are_verified),
        UNIT_TEST(zones_follow_the_end),
        UNIT_TEST(keeps_freed_blocks),
        UNIT_TEST(gives_units_back),
        UNIT_TEST(what_can_never_be_served_ends_no_quarantine),
        UNIT_TEST(a_large_block_waits_like_others),
        UNIT_TEST(requests_without_an_alignment_are_charged),
        UNIT_TEST(finds_what_was_written),
        UNIT_TEST(looks_at_nothing_unless_it_is_on),
        UNIT_TEST(takes_old_blocks_back),
        UNIT_TEST(may_be_asked_for_again),
        UNIT_TEST(old_blocks_are_verified_at_once),
        UNIT_TEST(all_threads_are_checked),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
