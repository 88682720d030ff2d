/* realloc and reallocarray. */
#include "cases.h"
#include "family.h"
#include "process.h"
#include "random.h"

#include <errno.h>
#include <string.h>

/* Byte i of every block of these tests; 251 is prime, so that a shifted copy shows. */
static unsigned char pattern(size_t i)
{
    return (unsigned char)(i % 251);
}

static void fill(unsigned char *block, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        block[i] = pattern(i);
    }
}

static void assert_filled(const unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i] != pattern(i)) {
            fail_msg("byte %zu of %zu changed", i, size);
        }
    }
}

static unsigned char *resize_and_check(unsigned char *block, size_t old_size, size_t new_size)
{
    unsigned char *moved = family.realloc(block, new_size);
    assert_non_null(moved);
    assert_true(family.usable_size(moved) >= new_size);
    assert_int_equal((uintptr_t)moved % (new_size >= 16 ? 16 : 8), 0);
    assert_filled(moved, old_size < new_size ? old_size : new_size);
    fill(moved, 0, new_size);
    return moved;
}

void realloc_of_null_allocates(void **state)
{
    (void)state;
    unsigned char *block = family.realloc(NULL, 100);
    assert_non_null(block);
    assert_true(family.usable_size(block) >= 100);
    family.free(block);
}

void realloc_to_zero_frees(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 30000, 100000, 1u << 20};
    const size_t before = process_rss_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        /* 512 MiB in all, which would show if it were not freed. */
        size_t rounds = (512u << 20) / sizes[i];
        rounds = rounds > 20000 ? 20000 : rounds;
        for (size_t round = 0; round < rounds; round++) {
            void *block = family.malloc(sizes[i]);
            assert_non_null(block);
            memset(block, 1, sizes[i]);
            assert_null(family.realloc(block, 0));
        }
    }
    assert_true(process_rss_bytes() < before + (128u << 20));
}

void realloc_keeps_content_up_and_down(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1,     8,     9,      16,     17,      100,     129,      1000,     4096,     5000,    20000,
        32767, 32768, 32769,  65536,  65537,   100000,  200000,   1u << 20, 3u << 20, 9u << 20, (9u << 20) + 1,
        20u << 20,
    };
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    size_t size = 1;
    unsigned char *block = family.malloc(size);
    fill(block, 0, size);
    for (size_t i = 0; i < SIZES; i++) {
        block = resize_and_check(block, size, sizes[i]);
        size = sizes[i];
    }
    for (size_t i = SIZES; i-- > 0;) {
        block = resize_and_check(block, size, sizes[i]);
        size = sizes[i];
    }
    family.free(block);
}

void realloc_keeps_content_between_random_sizes(void **state)
{
    (void)state;
    static const size_t limits[] = {40, 600, 5000, 70000, 70000, 1u << 20};
    uint64_t random = 1;
    size_t size = 0;
    unsigned char *block = NULL;
    for (size_t round = 0; round < 3000; round++) {
        const size_t limit = limits[random_below(&random, sizeof limits / sizeof limits[0])];
        const size_t new_size = 1 + random_below(&random, limit);
        block = resize_and_check(block, size, new_size);
        size = new_size;
    }
    family.free(block);
}

void realloc_keeps_content_of_aligned_blocks(void **state)
{
    (void)state;
    static const size_t new_sizes[] = {1, 50, 200, 5000, 50000, 3u << 20};
    for (size_t alignment = 16; alignment <= (4u << 20); alignment *= 4) {
        for (size_t i = 0; i < sizeof new_sizes / sizeof new_sizes[0]; i++) {
            for (size_t size = 60; size <= (1u << 20); size *= 13) {
                unsigned char *block = family.aligned_alloc(alignment, size);
                assert_non_null(block);
                fill(block, 0, size);
                family.free(resize_and_check(block, size, new_sizes[i]));
            }
        }
    }
}

void failing_realloc_leaves_the_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 16, 100, 5000, 32768, 40000, 1u << 20, 5u << 20};
    static const size_t too_large[] = {PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *block = family.malloc(sizes[i]);
        assert_non_null(block);
        fill(block, 0, sizes[i]);
        for (size_t j = 0; j < sizeof too_large / sizeof too_large[0]; j++) {
            errno = 0;
            assert_null(family.realloc(block, too_large[j]));
            assert_int_equal(errno, ENOMEM);
        }
        assert_true(family.usable_size(block) >= sizes[i]);
        assert_filled(block, sizes[i]);
        family.free(block);
    }
}

void reallocarray_follows_realloc(void **state)
{
    (void)state;
    unsigned char *block = family.reallocarray(NULL, 10, 10);
    assert_non_null(block);
    assert_true(family.usable_size(block) >= 100);
    fill(block, 0, 100);
    block = family.reallocarray(block, 1000, 100);
    assert_non_null(block);
    assert_true(family.usable_size(block) >= 100000);
    assert_filled(block, 100);
    block = family.reallocarray(block, 2, 20);
    assert_non_null(block);
    assert_filled(block, 40);
    assert_null(family.reallocarray(block, 0, 20)); /* frees, as realloc to 0 does */
    block = family.malloc(10);
    assert_null(family.reallocarray(block, 20, 0));
}
