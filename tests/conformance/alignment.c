/* Alignment: what every block has, and what one may ask for. */
#include "cases.h"
#include "family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_aligned(const void *ptr, size_t alignment)
{
    return (uintptr_t)ptr % alignment == 0;
}

void blocks_have_natural_alignment(void **state)
{
    (void)state;
    for (size_t size = 1; size <= (64u << 10); size += size < 2048 ? 1 : 97) {
        const size_t alignment = size >= 16 ? 16 : 8;
        void *blocks[6] = {
            family.malloc(size),
            family.calloc(1, size),
            family.calloc(size, 1),
            family.realloc(NULL, size),
            family.reallocarray(NULL, size, 1),
            family.realloc(family.malloc(size / 3 + 1), size),
        };
        for (size_t i = 0; i < 6; i++) {
            assert_non_null(blocks[i]);
            assert_true(is_aligned(blocks[i], alignment));
            family.free(blocks[i]);
        }
    }
}

struct interval {
    uintptr_t start;
    uintptr_t end;
};

static int by_start(const void *a, const void *b)
{
    const struct interval *left = a;
    const struct interval *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

static void *allocate_aligned(size_t kind, size_t alignment, size_t size)
{
    void *block = NULL;
    switch (kind) {
    case 0:
        return family.aligned_alloc(alignment, size);
    case 1:
        return family.memalign(alignment, size);
    default:
        assert_int_equal(family.posix_memalign(&block, alignment, size), 0);
        return block;
    }
}

void aligned_blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 7, 8, 16, 24, 100, 1000, 4096, 8000, 32768, 32769, 100000, 1u << 20};
    enum { SIZES = sizeof sizes / sizeof sizes[0], ALIGNMENTS = 20, KINDS = 3 };
    static struct interval live[SIZES * ALIGNMENTS * KINDS];
    size_t count = 0;
    for (size_t alignment = 8; alignment <= (4u << 20); alignment *= 2) {
        for (size_t i = 0; i < SIZES; i++) {
            for (size_t kind = 0; kind < KINDS; kind++) {
                void *block = allocate_aligned(kind, alignment, sizes[i]);
                assert_non_null(block);
                assert_true(is_aligned(block, alignment));
                assert_true(family.usable_size(block) >= sizes[i]);
                memset(block, 0x5a, sizes[i]);
                live[count++] = (struct interval){(uintptr_t)block, (uintptr_t)block + sizes[i]};
            }
        }
    }
    assert_int_equal(count, SIZES * ALIGNMENTS * KINDS);
    qsort(live, count, sizeof live[0], by_start);
    for (size_t i = 1; i < count; i++) {
        assert_true(live[i - 1].end <= live[i].start);
    }
    for (size_t i = 0; i < count; i++) {
        family.free((void *)live[i].start);
    }
}

void aligned_alloc_wants_a_power_of_two(void **state)
{
    (void)state;
    static const size_t bad[] = {0, 3, 5, 6, 7, 12, 24, 48, 100, 4095, 4097, 65537, SIZE_MAX, SIZE_MAX / 2 + 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        assert_null(family.aligned_alloc(bad[i], 64));
        assert_int_equal(errno, EINVAL);
    }
    for (size_t alignment = 1; alignment <= 16; alignment *= 2) {
        void *block = family.aligned_alloc(alignment, 100); /* the size need not be a multiple */
        assert_non_null(block);
        assert_true(is_aligned(block, 16));
        family.free(block);
    }
}

void posix_memalign_wants_a_power_of_two_of_pointers(void **state)
{
    (void)state;
    static const size_t bad[] = {0, 1, 2, 3, 4, 7, 12, 24, 40, 100, 4097, SIZE_MAX, SIZE_MAX / 2 + 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        void *untouched = &untouched;
        errno = EDOM;
        assert_int_equal(family.posix_memalign(&untouched, bad[i], 64), EINVAL);
        assert_int_equal(errno, EDOM);
        assert_ptr_equal(untouched, &untouched);
    }
    void *block = NULL;
    errno = EDOM;
    assert_int_equal(family.posix_memalign(&block, sizeof(void *), 64), 0);
    assert_int_equal(errno, EDOM);
    assert_non_null(block);
    family.free(block);
}

void memalign_rounds_the_alignment_up(void **state)
{
    (void)state;
    static const size_t asked_and_got[][2] = {
        {0, 16}, {1, 16}, {3, 16}, {17, 32}, {24, 32}, {48, 64}, {100, 128}, {3000, 4096}, {5000, 8192}, {65537, 131072},
    };
    for (size_t i = 0; i < sizeof asked_and_got / sizeof asked_and_got[0]; i++) {
        /* Several, since one block may be aligned by chance. */
        void *blocks[8];
        for (size_t j = 0; j < 8; j++) {
            blocks[j] = family.memalign(asked_and_got[i][0], 40);
            assert_non_null(blocks[j]);
            assert_true(is_aligned(blocks[j], asked_and_got[i][1]));
        }
        for (size_t j = 0; j < 8; j++) {
            family.free(blocks[j]);
        }
    }
    /* No power of two is as large as this. */
    errno = 0;
    assert_null(family.memalign(SIZE_MAX, 1));
    assert_int_equal(errno, EINVAL);
}

void valloc_and_pvalloc_give_pages(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 10000, 65536, 65537, 1u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *block = family.valloc(sizes[i]);
        void *whole_pages = family.pvalloc(sizes[i]);
        assert_non_null(block);
        assert_non_null(whole_pages);
        assert_true(is_aligned(block, page));
        assert_true(is_aligned(whole_pages, page));
        assert_true(family.usable_size(block) >= sizes[i]);
        assert_true(family.usable_size(whole_pages) >= (sizes[i] + page - 1) / page * page);
        memset(block, 1, family.usable_size(block));
        memset(whole_pages, 2, family.usable_size(whole_pages));
        family.free(block);
        family.free(whole_pages);
    }
}
