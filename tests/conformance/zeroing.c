/* calloc: zeroed whether or not the memory was used before. */
#include "cases.h"
#include "family.h"

#include <string.h>

static const size_t SIZES[] = {
    1, 8, 15, 16, 64, 100, 1000, 1024, 4096, 10000, 32768, 32769, 40000, 65536, 200000, 1u << 20, 2u << 20, 9u << 20,
};
enum { SIZE_COUNT = sizeof SIZES / sizeof SIZES[0], MOST_BLOCKS = 200 };

/* As many blocks as make 16 MiB, at most MOST_BLOCKS. */
static size_t block_count(size_t size)
{
    const size_t count = (16u << 20) / size;
    return count < MOST_BLOCKS ? count : MOST_BLOCKS;
}

static void assert_zero(const unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i] != 0) {
            fail_msg("byte %zu of %zu is 0x%02x", i, size, (unsigned)block[i]);
        }
    }
}

/* Allocates blocks with calloc, checks them, and frees them dirty. */
static void check_round(size_t size, size_t element)
{
    void *blocks[MOST_BLOCKS];
    const size_t count = block_count(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = family.calloc(size / element, element);
        assert_non_null(blocks[i]);
        assert_zero(blocks[i], size / element * element);
        memset(blocks[i], 0xa5, family.usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        family.free(blocks[i]);
    }
}

void calloc_gives_zeroes_from_fresh_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        check_round(SIZES[i], 1);
    }
}

void calloc_gives_zeroes_from_dirty_memory(void **state)
{
    (void)state;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            check_round(SIZES[i], SIZES[i] % 8 == 0 ? 8 : 1);
        }
        family.malloc_trim(0); /* the second and third rounds find memory that was given back */
    }
}
