/* heap/door.h, heap/orphan.h: what happens in a signal handler that interrupted the door, and to threads without
 * a heap. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "config/policy.h"
#include "fake_os.h"
#include "heap/budget.h"
#include "heap/events.h"
#include "heap/magazine.h"
#include "heap/mail.h"
#include "heap/orphan.h"
#include "heap/shelf.h"
#include "heaps.h"
#include "large/large.h"
#include "worker.h"

enum { SIZE = 64, DEFERRED = 24 };

static size_t live_large(void)
{
    struct large_stats stats;
    large_stats(&stats);
    return stats.live_blocks;
}

/* As if a signal had interrupted the door of the calling thread. */
static void interrupt(struct heap *heap)
{
    CHECK(heap->in_door == 0);
    heap->in_door = 1;
}

static void resume(struct heap *heap)
{
    heap->in_door = 0;
}

static struct heap *left;

static void defer_and_end(void *large)
{
    left = heap_own();
    interrupt(left);
    hak_free(large);
    CHECK(left->deferred_count == 1);
    resume(left);
}

/* Its thread was not at the door again. */
static void deferred_frees_are_done_at_the_end(void)
{
    struct worker worker;
    worker_start(&worker);
    void *large = hak_malloc(100000);
    worker_run(&worker, defer_and_end, large);
    CHECK(live_large() == 1);
    worker_stop(&worker);
    CHECK(left->deferred_count == 0 && live_large() == 0);
}

/* Comes to the door, whatever the magazines hold. */
static void visit_door(void)
{
    hak_free(hak_malloc(SMALL_MAX + 1));
}

static void nested_frees_are_deferred(void)
{
    struct heap *heap = heap_own();
    void *large[DEFERRED];
    for (int i = 0; i < DEFERRED; i++)
        large[i] = hak_malloc(100000);
    interrupt(heap);
    for (int i = 0; i < DEFERRED; i++)
        hak_free(large[i]);
    CHECK(heap->deferred_count == DEFERRED);
    CHECK(live_large() == DEFERRED);
    resume(heap);
    visit_door();
    CHECK(heap->deferred_count == 0);
    CHECK(live_large() == 0);
}

static void nested_frees_beyond_the_list_go_home(void)
{
    struct heap *heap = heap_own();
    void *theirs[DEFERRED + 5];
    for (int i = 0; i < DEFERRED + 5; i++) {
        interrupt(heap);
        theirs[i] = hak_malloc(SMALL_MAX); /* from the orphan heap */
        resume(heap);
        CHECK(theirs[i] != NULL && heap_of(theirs[i]) != heap);
    }
    struct heap *orphan = heap_of(theirs[0]);
    interrupt(heap);
    for (int i = 0; i < DEFERRED; i++)
        hak_free(theirs[i]);
    CHECK(orphan->shelf[size_class_of(SMALL_MAX)].blocks_out == DEFERRED + 5);
    for (int i = DEFERRED; i < DEFERRED + 5; i++)
        hak_free(theirs[i]);
    CHECK(orphan->shelf[size_class_of(SMALL_MAX)].blocks_out == DEFERRED);
    resume(heap);
    visit_door();
    mail_post_all(heap);
    orphan_malloc(SMALL_MAX);
    CHECK(orphan->shelf[size_class_of(SMALL_MAX)].blocks_out == 1);
}

/* A block that comes to it may be another's by then, if it has given its slab away: it is sent on, not later than the next heartbeat. */
static void the_orphan_sends_on_what_is_anothers(void)
{
    enum { SIZE = 64 };
    struct heap *own = heap_own();
    char *first = orphan_malloc(SIZE);
    struct heap *orphan = heap_of(first);
    CHECK(orphan != own && mail_send(own, orphan, orphan_malloc(SIZE)));
    mail_post_all(own);
    struct slab *slab = shelf_part_with(orphan, size_class_of(SIZE));
    CHECK(slab != NULL);
    shelf_adopt(own, slab);
    CHECK(mail_waits(orphan) && orphan_malloc(SIZE) != NULL);
    CHECK(!mail_waits(orphan) && !mail_waits(own));
    orphan_tidy();
    CHECK(mail_waits(own));
    hak_free(first);
}

static void nested_mallocs_come_from_the_orphan(void)
{
    struct heap *heap = heap_own();
    char *blocks[500];
    interrupt(heap);
    for (size_t i = 0; i < 500; i++) {
        blocks[i] = hak_malloc(300 + i);
        CHECK(blocks[i] != NULL);
        CHECK(heap_of(blocks[i]) != heap);
        memset(blocks[i], 1, 300 + i);
    }
    char *large = hak_malloc(100000);
    CHECK(large != NULL);
    resume(heap);
    for (size_t i = 0; i < 500; i++)
        hak_free(blocks[i]);
    hak_free(large);
    mail_post_all(heap);
    char *next = orphan_malloc(10);
    CHECK(next != NULL);
    CHECK(!mail_waits(heap_of(next)));
}

static void nested_calls_respect_held_locks(void)
{
    struct heap *heap = heap_own();
    void *large = hak_malloc(100000);
    span_lock_all();
    interrupt(heap);
    errno = 0;
    CHECK(hak_malloc(2000) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(hak_malloc(100000) == NULL && errno == ENOMEM);
    hak_free(large);
    CHECK(heap->deferred_count == 1);
    resume(heap);
    span_unlock_all();
    CHECK(hak_malloc(2000) != NULL);
    CHECK(heap->deferred_count == 0 && live_large() == 0);
}

static volatile sig_atomic_t handled;
static void *volatile kept;

/* Allocates and frees of every kind, in whatever it interrupts. */
static void handle(int signal)
{
    (void)signal;
    void *large = hak_malloc(100000);
    void *small = hak_malloc(SMALL_MAX);
    CHECK(large != NULL && small != NULL);
    memset(large, 2, 100000);
    memset(small, 2, SMALL_MAX);
    hak_free(kept);
    kept = small;
    hak_free(large);
    handled = 1;
}

static void raise_signal(struct heap *heap)
{
    (void)heap;
    heap_events.heartbeat = NULL;
    CHECK(raise(SIGUSR1) == 0);
}

static void signal_handlers_may_interrupt_the_door(void)
{
    struct heap *heap = heap_own();
    CHECK(signal(SIGUSR1, handle) != SIG_ERR);
    for (int i = 0; i < 100; i++) {
        heap_events.heartbeat = raise_signal;
        budget_hurry(heap);
        handled = 0;
        char *block = hak_malloc(SIZE);
        CHECK(handled);
        CHECK(heap->in_door == 0);
        memset(block, 1, SIZE);
        hak_free(block);
    }
}

/* No memory for a heap: the thread asks again. */
static void unborn_threads_try_again(void)
{
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK(hak_malloc(SIZE) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(hak_malloc(100000) == NULL && errno == ENOMEM);
        CHECK(view_load() == STATIC_VIEW(unborn));
        hak_free(NULL);
        CHECK(hak_malloc_trim(0) == 0);
        CHECK(hak_prewarm(SIZE, 10) == 0);
    }
    fake_os_obey();
    char *block = hak_malloc(SIZE);
    CHECK(block != NULL);
    CHECK(view_load()->heap != NULL && view_load()->kind == VIEW_HEAP);
    memset(block, 1, SIZE);
    hak_free(block);
}

static void free_value(uintptr_t value)
{
    hak_free((void *)value);
}

static void free_value_with_heap(uintptr_t value)
{
    heap_own();
    hak_free((void *)value);
}

static void any_value_ends_in_one_line(void)
{
    static const uintptr_t values[] = {1, 7, 8, 4096, (uintptr_t)1 << 46, (uintptr_t)1 << 47, INTPTR_MAX, UINTPTR_MAX,
                                       UINTPTR_MAX - 7};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        CHECK_DIES(free_value, values[i], "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(thread [0-9]+\\)");
        CHECK_DIES(free_value_with_heap, values[i], "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(thread [0-9]+\\)");
    }
}

static void free_large_twice(uintptr_t cache_bytes)
{
    policy.bigcache_bytes = cache_bytes;
    void *block = hak_malloc(100000);
    hak_free(block);
    hak_free(block);
}

static void free_inside_large(uintptr_t offset)
{
    hak_free((char *)hak_malloc(300000) + offset);
}

static void large_faults_end_in_one_line(void)
{
    CHECK_DIES(free_large_twice, 64 << 20,
               "hakmem: fatal: double free of 0x[0-9a-f]+ \\(large, 102400 B, thread [0-9]+\\)");
    CHECK_DIES(free_large_twice, 0, "hakmem: fatal: double free of 0x[0-9a-f]+ \\(large, thread [0-9]+\\)");
    CHECK_DIES(free_inside_large, 8, "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(large, 303104 B, thread [0-9]+\\)");
    CHECK_DIES(free_inside_large, 3, "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(large, 303104 B, thread [0-9]+\\)");
    CHECK_DIES(free_inside_large, 65536, "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(thread [0-9]+\\)");
}

static void trim_gives_everything_back(void)
{
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    heap_own();
    hak_malloc_trim(0);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(i * 37 % 50000);
        memset(blocks[i], 1, i * 37 % 50000);
    }
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(hak_malloc_trim(0) == 1);
    struct span_stats stats;
    span_stats(&stats);
    CHECK(stats.used_bytes == 0);
    CHECK(stats.dirty_bytes == 0);
    CHECK(hak_malloc_trim(0) == 0);
}

/* What the caller has cached stays with the lower level, and what is live with both; holes in slabs go with the higher. */
static void purge_has_levels(void)
{
    enum { BLOCKS = 256, BIG = 32768, OF_SLAB = 4 };
    static char *blocks[BLOCKS];
    struct heap *heap = heap_own();
    unsigned class = size_class_of(BIG);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(BIG);
        memset(blocks[i], i + 1, BIG);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (i % OF_SLAB != 0)
            hak_free(blocks[i]);
    CHECK(magazine_count(heap, class) > 0);
    errno = 0;
    CHECK(hak_purge((enum hak_purge_level)7) == 0 && errno == EINVAL);
    char *large = hak_malloc(5 * MIB);
    memset(large, 1, 5 * MIB);
    hak_free(large);
    CHECK(hak_purge(HAK_PURGE_FREE) >= 5 * MIB);
    CHECK(magazine_count(heap, class) > 0 && heap->hole_bytes < BLOCKS / OF_SLAB * 64 * KIB);
    CHECK(hak_purge(HAK_PURGE_CACHED) >= BLOCKS / OF_SLAB * 64 * KIB);
    CHECK(magazine_count(heap, class) == 0 && heap->hole_bytes >= BLOCKS / OF_SLAB * 64 * KIB);
    CHECK(hak_purge(HAK_PURGE_CACHED) == 0);
    for (int i = 0; i < BLOCKS; i += OF_SLAB)
        for (size_t at = 0; at < BIG; at++)
            CHECK(blocks[i][at] == (char)(i + 1));
}

static void prewarmed_slabs_go_back(void)
{
    heap_own();
    hak_malloc_trim(0);
    size_t before = span_used_bytes();
    CHECK(hak_prewarm(1024, 10000) == 10000);
    CHECK(span_used_bytes() >= before + 10000 * 1024 / 2);
    hak_malloc_trim(0);
    CHECK(span_used_bytes() == before);
}

static void what_is_prewarmed_needs_no_system(void)
{
    enum { READY = 3000 };
    heap_own();
    CHECK(hak_prewarm(200, READY) == READY);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    for (int i = 0; i < READY; i++)
        CHECK(hak_malloc(200) != NULL);
}

static void blocks_shrink_without_memory(void)
{
    char *block = hak_malloc(30000);
    memset(block, 7, 30000);
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    while (hak_malloc(300) != NULL)
        ;
    errno = 77;
    CHECK(hak_realloc(block, 300) == block);
    CHECK(errno == 77);
    fake_os_obey();
    for (int i = 0; i < 300; i++)
        CHECK(block[i] == 7);
}

/* A block that has to move has room to grow on; without memory for that, it still gets what was asked for. */
static void moved_blocks_have_room(void)
{
    for (size_t bytes = 128; bytes <= SMALL_MAX / 2; bytes *= 2) {
        char *block = hak_realloc(hak_malloc(bytes + bytes / 4), bytes + bytes / 4 + 1);
        CHECK(hak_malloc_usable_size(block) >= bytes * 25 / 16);
        CHECK(hak_realloc(block, bytes * 25 / 16) == block);
        hak_free(block);
    }
    CHECK(hak_malloc_usable_size(hak_realloc(hak_malloc(100), 1000)) == 1024);
    char *block = hak_malloc(640);
    void *neighbour = hak_malloc(700); /* else its slab would be given back, when there is no more memory */
    hak_free(hak_malloc(700));
    fake_os_refuse(FAKE_ALL, 1, FAKE_EVERY);
    while (hak_malloc(800) != NULL)
        ;
    errno = 77;
    block = hak_realloc(block, 700);
    CHECK(block != NULL && hak_malloc_usable_size(block) == 768 && errno == 77);
    fake_os_obey();
    hak_free(neighbour);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(nested_frees_are_deferred),
        UNIT_TEST(deferred_frees_are_done_at_the_end),
        UNIT_TEST(nested_frees_beyond_the_list_go_home),
        UNIT_TEST(the_orphan_sends_on_what_is_anothers),
        UNIT_TEST(nested_mallocs_come_from_the_orphan),
        UNIT_TEST(nested_calls_respect_held_locks),
        UNIT_TEST(signal_handlers_may_interrupt_the_door),
        UNIT_TEST(unborn_threads_try_again),
        UNIT_TEST(any_value_ends_in_one_line),
        UNIT_TEST(large_faults_end_in_one_line),
        UNIT_TEST(trim_gives_everything_back),
        UNIT_TEST(purge_has_levels),
        UNIT_TEST(prewarmed_slabs_go_back),
        UNIT_TEST(what_is_prewarmed_needs_no_system),
        UNIT_TEST(blocks_shrink_without_memory),
        UNIT_TEST(moved_blocks_have_room),
    };
    return cmocka_run_group_tests_name("door", tests, NULL, NULL);
}
