/*
 * Pointers that are no block: inside one, misaligned, someone else's memory, and values that are no address at
 * all. What free cannot see at once (an inside pointer on a multiple of 8) the audit sees at flush.
 */
#include "cases.h"
#include "check.h"
#include "child.h"
#include "family.h"
#include "random.h"
#include "scale.h"
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void free_value(uintptr_t value)
{
    fault_announce((void *)value);
    family.free((void *)value);
}

static void free_middle_and_flush(uintptr_t size)
{
    char *block = family.malloc(size);
    fault_prepare(size);
    fault_announce(block + size / 2 / 8 * 8);
    family.free(block + size / 2 / 8 * 8);
    fault_flush();
}

void free_inside_a_small_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 64, 96, 1024, 5000, 32768};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_true(fault_is_reported(free_middle_and_flush, sizes[i], INVALID_FREE_SMALL));
    }
}

static void free_offset_in_large(uintptr_t offset)
{
    char *block = family.malloc(3u << 20);
    fault_announce(block + offset);
    family.free(block + offset);
}

void free_inside_a_large_block(void **state)
{
    (void)state;
    static const size_t offsets[] = {8, 16, 4096, 65536, 2u << 20, (3u << 20) - 16};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        assert_true(fault_is_reported(free_offset_in_large, offsets[i], INVALID_FREE_ANY));
    }
}

static void free_offset_in_small(uintptr_t offset)
{
    char *block = family.malloc(100);
    fault_announce(block + offset);
    family.free(block + offset);
}

void free_of_misaligned_addresses(void **state)
{
    (void)state;
    static const size_t offsets[] = {1, 2, 3, 4, 5, 6, 7, 9, 12, 33};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        assert_true(fault_is_reported(free_offset_in_small, offsets[i], INVALID_FREE_ANY));
        assert_true(fault_is_reported(free_offset_in_large, offsets[i], INVALID_FREE_ANY));
    }
}

static char static_memory[64];

static void free_stack(uintptr_t value)
{
    char local[64];
    (void)value;
    memset(local, 1, sizeof local);
    const uintptr_t aligned = ((uintptr_t)local + 15) / 16 * 16;
    fault_announce((void *)aligned);
    family.free((void *)aligned);
}

static void free_mapping(uintptr_t value)
{
    void *mapping = mmap(NULL, 1u << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)value;
    fault_announce(mapping);
    family.free(mapping);
}

void free_of_foreign_memory(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_stack, 0, INVALID_FREE_ANY));
    assert_true(fault_is_reported(free_mapping, 0, INVALID_FREE_ANY));
    assert_true(fault_is_reported(free_value, (uintptr_t)static_memory / 16 * 16 + 16, INVALID_FREE_UNKNOWN));
    assert_true(fault_is_reported(free_value, (uintptr_t)"a constant" / 16 * 16, INVALID_FREE_UNKNOWN));
    assert_true(fault_is_reported(free_value, (uintptr_t)free_stack / 16 * 16, INVALID_FREE_UNKNOWN));
}

static const uintptr_t WEIRD_VALUES[] = {
    1, 7, 8, 16, 4096, 65536, 0x7fffffff, 0xffffffff, 0x100000000, 0xdeadbeef,
    0x00007fffffffffff,  /* the last byte a program may have */
    0x00007ffffffff000,  /* its last page */
    0x0000800000000000,  /* the first address that is not canonical */
    0xffff7ffffffffff8,  /* the last one */
    0xffff800000000000,  /* the kernel's first */
    0xffffffff81000000,  /* kernel code */
    0xffffffffff600000,  /* the vsyscall page */
    0x8000000000000000, 0x7fffffffffffffff, 0x7ffffffffffffff8, 0x4141414141414141, 0xdeadbeefdeadbeef,
    0xfffffffffffffff0, 0xfffffffffffffff8, 0xffffffffffffffff,
};
enum { WEIRD_COUNT = sizeof WEIRD_VALUES / sizeof WEIRD_VALUES[0] };

void free_of_weird_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < WEIRD_COUNT; i++) {
        assert_true(fault_is_reported(free_value, WEIRD_VALUES[i], INVALID_FREE_UNKNOWN));
    }
}

void free_of_random_values(void **state)
{
    (void)state;
    uint64_t random = 42;
    for (size_t i = 0; i < scaled_work(300); i++) {
        /* All widths alike, or every value would be above the addresses that programs have. */
        const uintptr_t value = (random_next(&random) | 1ull << 63) >> random_below(&random, 64);
        assert_true(fault_is_reported(free_value, value, INVALID_FREE_ANY));
    }
}

/* Frees base + value and then does some ordinary work. */
static void free_near(uintptr_t value)
{
    static char *small;
    static char *large;
    small = family.malloc(48);
    large = family.malloc(200000);
    const uintptr_t offset = (uintptr_t)((intptr_t)value >> 1);
    const uintptr_t address = (uintptr_t)(value & 1 ? small : large) + offset;
    fault_announce((void *)address);
    family.free((void *)address);
    fault_prepare(48);
    fault_flush();
}

/* In and around the heap: units without blocks, metadata, ends of ranges. A wrong pointer may go unseen until
 * the audit, but nothing ends in a memory fault. */
void free_near_live_blocks_never_faults(void **state)
{
    (void)state;
    uint64_t random = 43;
    for (size_t i = 0; i < scaled_work(300); i++) {
        const unsigned shift = 1 + (unsigned)random_below(&random, 63);
        const uintptr_t value = (uintptr_t)((int64_t)random_next(&random) >> shift);
        const struct child child = child_run(free_near, value);
        if (child.status != 0 && !(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT)) {
            fail_msg("status 0x%x for 0x%zx: %s", (unsigned)child.status, (size_t)value, child.output);
        }
        if (child.status != 0) {
            assert_int_equal(strncmp(child.output, "hakmem: fatal: ", strlen("hakmem: fatal: ")), 0);
        }
    }
}

static void realloc_value(uintptr_t value)
{
    fault_announce((void *)value);
    if (family.realloc((void *)value, 100) == NULL) {
        _Exit(2);
    }
}

static void usable_size_of_value(uintptr_t value)
{
    fault_announce((void *)value);
    if (family.usable_size((void *)value) == 0) {
        _Exit(2);
    }
}

void realloc_and_usable_size_of_weird_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < WEIRD_COUNT; i++) {
        assert_true(fault_is_reported(realloc_value, WEIRD_VALUES[i], INVALID_USE_ANY));
        assert_true(fault_is_reported(usable_size_of_value, WEIRD_VALUES[i], INVALID_USE_ANY));
    }
}

/* Of a block that comes to the door: a large one, or another thread's. */
static void free_large_by_size(uintptr_t size)
{
    char *block = family.malloc(1u << 20);
    fault_announce(block);
    family.free_sized(block, size);
}

static void *allocate_in_thread(void *size)
{
    return family.malloc((size_t)(uintptr_t)size);
}

static void free_other_threads_by_size(uintptr_t size)
{
    pthread_t thread;
    void *block = NULL;
    family.free(family.malloc(1)); /* this thread's heap will not be that one's */
    CHECK(pthread_create(&thread, NULL, allocate_in_thread, (void *)size) == 0);
    CHECK(pthread_join(thread, &block) == 0);
    fault_announce(block);
    family.free_sized(block, size * 2);
}

void free_by_too_large_a_size(void **state)
{
    (void)state;
    assert_true(fault_is_reported(free_large_by_size, (1u << 20) + 1, WRONG_SIZE_ANY));
    assert_true(fault_is_reported(free_large_by_size, SIZE_MAX / 2, WRONG_SIZE_ANY));
    assert_true(fault_is_reported(free_other_threads_by_size, 100, WRONG_SIZE_ANY));
    assert_true(fault_is_reported(free_other_threads_by_size, 16384, WRONG_SIZE_ANY));
}
