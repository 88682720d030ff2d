/* Sizes: nothing, too much, and everything in between. */
#include "cases.h"
#include "family.h"

#include <errno.h>
#include <string.h>

static const size_t TOO_LARGE[] = {
    PTRDIFF_MAX,
    (size_t)PTRDIFF_MAX + 1,
    (size_t)PTRDIFF_MAX + 4096,
    SIZE_MAX / 4 * 3,
    SIZE_MAX - (4u << 20),
    SIZE_MAX - 65536,
    SIZE_MAX - 4096,
    SIZE_MAX - 4095,
    SIZE_MAX - 16,
    SIZE_MAX - 1,
    SIZE_MAX,
};
enum { TOO_LARGE_COUNT = sizeof TOO_LARGE / sizeof TOO_LARGE[0] };

#define assert_fails_with_enomem(call) \
    do {                               \
        errno = 0;                     \
        assert_null(call);             \
        assert_int_equal(errno, ENOMEM); \
    } while (0)

static void assert_all_differ(void *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_non_null(blocks[i]);
        for (size_t j = 0; j < i; j++) {
            assert_ptr_not_equal(blocks[i], blocks[j]);
        }
    }
}

void zero_size_gives_unique_blocks(void **state)
{
    (void)state;
    enum { EACH = 50, KINDS = 9 };
    void *blocks[EACH * KINDS];
    for (size_t i = 0; i < EACH * KINDS; i += KINDS) {
        blocks[i] = family.malloc(0);
        blocks[i + 1] = family.calloc(0, 5);
        blocks[i + 2] = family.calloc(5, 0);
        blocks[i + 3] = family.realloc(NULL, 0);
        blocks[i + 4] = family.aligned_alloc(64, 0);
        assert_int_equal(family.posix_memalign(&blocks[i + 5], 128, 0), 0);
        blocks[i + 6] = family.memalign(32, 0);
        blocks[i + 7] = family.valloc(0);
        blocks[i + 8] = family.pvalloc(0);
    }
    assert_all_differ(blocks, EACH * KINDS);
    for (size_t i = 0; i < EACH * KINDS; i++) {
        family.free(blocks[i]);
    }
}

void oversize_fails_with_enomem(void **state)
{
    (void)state;
    for (size_t i = 0; i < TOO_LARGE_COUNT; i++) {
        const size_t size = TOO_LARGE[i];
        assert_fails_with_enomem(family.malloc(size));
        assert_fails_with_enomem(family.calloc(1, size));
        assert_fails_with_enomem(family.calloc(size, 1));
        assert_fails_with_enomem(family.realloc(NULL, size));
        assert_fails_with_enomem(family.reallocarray(NULL, 1, size));
        assert_fails_with_enomem(family.aligned_alloc(64, size));
        assert_fails_with_enomem(family.memalign(64, size));
        assert_fails_with_enomem(family.valloc(size));
        assert_fails_with_enomem(family.pvalloc(size));

        void *untouched = &untouched;
        errno = EDOM;
        assert_int_equal(family.posix_memalign(&untouched, 64, size), ENOMEM);
        assert_int_equal(errno, EDOM);
        assert_ptr_equal(untouched, &untouched);
    }
}

void oversize_alignment_plus_size_fails(void **state)
{
    (void)state;
    const size_t half = (size_t)PTRDIFF_MAX + 1;
    assert_fails_with_enomem(family.aligned_alloc(half, 1));
    assert_fails_with_enomem(family.aligned_alloc(half / 2, half / 2));
    assert_fails_with_enomem(family.aligned_alloc(1u << 20, PTRDIFF_MAX - 100));
    assert_fails_with_enomem(family.memalign(half, 1));
    assert_fails_with_enomem(family.memalign(half / 2, half - 1));
    void *untouched = &untouched;
    assert_int_equal(family.posix_memalign(&untouched, half, 1), ENOMEM);
    assert_ptr_equal(untouched, &untouched);
}

void overflowing_products_fail_with_enomem(void **state)
{
    (void)state;
    const size_t products[][2] = {
        {SIZE_MAX, 2},           {2, SIZE_MAX},
        {SIZE_MAX / 2 + 1, 2},   {(size_t)1 << 32, (size_t)1 << 32},
        {SIZE_MAX, SIZE_MAX},    {((size_t)1 << 32) + 1, (size_t)1 << 32},
        {SIZE_MAX / 16 + 2, 16}, {(size_t)PTRDIFF_MAX / 2 + 1, 2},
    };
    void *kept = family.malloc(100);
    assert_non_null(kept);
    memset(kept, 7, 100);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        assert_fails_with_enomem(family.calloc(products[i][0], products[i][1]));
        assert_fails_with_enomem(family.reallocarray(NULL, products[i][0], products[i][1]));
        assert_fails_with_enomem(family.reallocarray(kept, products[i][0], products[i][1]));
    }
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(((unsigned char *)kept)[i], 7);
    }
    family.free(kept);
}

static void check_usable_area(size_t size)
{
    unsigned char *block = family.malloc(size);
    unsigned char *neighbour = family.malloc(size);
    assert_non_null(block);
    assert_non_null(neighbour);
    const size_t usable = family.usable_size(block);
    const size_t neighbour_usable = family.usable_size(neighbour);
    assert_true(usable >= size);
    assert_true(neighbour_usable >= size);

    /* Written to the last byte, neither changes the other, nor do they change the allocator. */
    memset(block, 0x11, usable);
    memset(neighbour, 0x22, neighbour_usable);
    assert_true(usable == 0 || (block[0] == 0x11 && block[usable - 1] == 0x11));
    assert_true(neighbour_usable == 0 || (neighbour[0] == 0x22 && neighbour[neighbour_usable - 1] == 0x22));
    family.free(block);
    family.free(neighbour);
}

void usable_area_covers_the_request_and_is_writable(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 5000; size++) {
        check_usable_area(size);
    }
    for (size_t power = 4096; power <= (8u << 20); power *= 2) {
        for (size_t quarter = 4; quarter < 8; quarter++) {
            const size_t size = power / 4 * quarter;
            check_usable_area(size - 1);
            check_usable_area(size);
            check_usable_area(size + 1);
        }
    }
}
