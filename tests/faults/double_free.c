/* Blocks freed twice: at once, seen by free; later, seen by the audit when the magazine is flushed. */
#include "cases.h"
#include "check.h"
#include "family.h"
#include "support.h"

#include <pthread.h>

static const size_t SMALL_SIZES[] = {8, 16, 64, 200, 1024, 5000, 32768};
enum { SMALL_COUNT = sizeof SMALL_SIZES / sizeof SMALL_SIZES[0] };

static void free_twice(uintptr_t size)
{
    void *block = family.malloc(size);
    fault_announce(block);
    family.free(block);
    family.free(block);
}

void double_free_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        assert_true(fault_is_reported(free_twice, SMALL_SIZES[i], DOUBLE_FREE_SMALL));
    }
}

static void free_a_b_a(uintptr_t size)
{
    void *a = family.malloc(size);
    void *b = family.malloc(size);
    fault_prepare(size);
    fault_announce(a);
    family.free(a);
    family.free(b);
    family.free(a);
    fault_flush();
}

void double_free_with_another_between(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        assert_true(fault_is_reported(free_a_b_a, SMALL_SIZES[i], DOUBLE_FREE_SMALL));
    }
}

/* Large blocks go to a cache of their own; the second free finds no live block there. */
static void free_large_a_b_a(uintptr_t size)
{
    void *a = family.malloc(size);
    void *b = family.malloc(size);
    fault_announce(a);
    family.free(a);
    family.free(b);
    family.free(a);
}

void double_free_of_large_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = {32769, 100000, 1u << 20, 5u << 20, 20u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_true(fault_is_reported(free_twice, sizes[i], DOUBLE_FREE_LARGE));
        assert_true(fault_is_reported(free_large_a_b_a, sizes[i], DOUBLE_FREE_LARGE));
    }
}

/* Too large to be kept: of its memory nothing is left by then but the knowledge that it was freed. */
void double_free_of_huge_blocks(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_twice, 100u << 20, DOUBLE_FREE_LARGE));
    assert_true(fault_is_reported(free_large_a_b_a, 1u << 30, DOUBLE_FREE_LARGE));
}

static void *free_pair(void *argument)
{
    void **pair = argument;
    family.free(pair[0]);
    family.free(pair[1]);
    family.free(pair[0]);
    return NULL;
}

static void free_twice_remotely(uintptr_t size)
{
    void *pair[2] = {family.malloc(size), family.malloc(size)};
    fault_prepare(size);
    fault_announce(pair[0]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_pair, pair) == 0);
    pthread_join(thread, NULL);
    fault_flush();
    /* Where the mail was not opened yet, new threads and the trim see to it. */
    family.malloc_trim(0);
}

void double_free_by_another_thread(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_twice_remotely, 64, DOUBLE_FREE_ANY));
    assert_true(fault_is_reported(free_twice_remotely, 2000, DOUBLE_FREE_ANY));
}

static void *free_two_times(void *block)
{
    family.free(block);
    family.free(block);
    return NULL;
}

/* At once: the thread does nothing else. */
static void free_twice_elsewhere(uintptr_t size)
{
    void *block = family.malloc(size);
    fault_prepare(size);
    fault_announce(block);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_two_times, block) == 0);
    pthread_join(thread, NULL);
}

void double_free_of_another_threads_block(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_twice_elsewhere, 64, DOUBLE_FREE_ANY));
    assert_true(fault_is_reported(free_twice_elsewhere, 2000, DOUBLE_FREE_ANY));
}

/* realloc moved the block, so that the old pointer is a freed one. */
static void free_after_moving(uintptr_t size)
{
    void *old = family.malloc(size);
    void *moved = family.realloc(old, size * 20);
    CHECK(moved != NULL && moved != old);
    fault_announce(old);
    family.free(old);
}

void double_free_after_realloc(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_after_moving, 64, DOUBLE_FREE_SMALL));
    assert_true(fault_is_reported(free_after_moving, 1500, DOUBLE_FREE_SMALL));
}

static void realloc_freed(uintptr_t size)
{
    void *block = family.malloc(size);
    fault_announce(block);
    family.free(block);
    if (family.realloc(block, size) == NULL) {
        return;
    }
}

/* The size would fit in place, so that nothing is freed a second time. */
void realloc_of_a_freed_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        assert_true(fault_is_reported(realloc_freed, SMALL_SIZES[i], USE_AFTER_FREE_SMALL));
    }
}
