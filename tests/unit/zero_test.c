/* base/zero.h against one byte at a time: every length, place and alignment, with one byte that is not zero inside and others
 * outside. */
#include "unit.h"

#include <string.h>

#include "base/zero.h"

enum { LONGEST = 200, AROUND = 16 };

static char memory[AROUND + VECTOR_BYTES + LONGEST + AROUND] ALIGNED(VECTOR_BYTES);

/* Zero are `bytes` from here on, and nothing around them. */
static char *zero_among_others(size_t offset, size_t bytes)
{
    memset(memory, 0xff, sizeof memory);
    return memset(memory + AROUND + offset, 0, bytes);
}

static void finds_each_byte(void)
{
    for (size_t offset = 0; offset < VECTOR_BYTES; offset++) {
        for (size_t bytes = 0; bytes <= LONGEST; bytes++) {
            char *start = zero_among_others(offset, bytes);
            CHECK(is_zero(start, bytes));
            for (size_t i = 0; i < bytes; i++) {
                start[i] = (char)(1 << i % 8);
                CHECK(!is_zero(start, bytes));
                start[i] = 0;
            }
        }
    }
}

static void finds_each_byte_before_an_end(void)
{
    for (size_t offset = 0; offset < VECTOR_BYTES; offset++) {
        for (size_t bytes = 0; bytes <= LONGEST; bytes++) {
            char *start = zero_among_others(offset, bytes);
            CHECK(is_zero_before(start + bytes, bytes));
            for (size_t i = 0; i < bytes; i++) {
                start[i] = (char)(1 << i % 8);
                CHECK(!is_zero_before(start + bytes, bytes));
                start[i] = 0;
            }
        }
    }
}

static void finds_each_byte_of_vectors(void)
{
    for (size_t bytes = VECTOR_BYTES; bytes <= LONGEST; bytes += VECTOR_BYTES) {
        char *start = zero_among_others(0, bytes);
        CHECK(ones_in_vectors((vector *)(void *)start, bytes) == 0);
        for (size_t i = 0; i < bytes; i++) {
            start[i] = (char)(1 << i % 8);
            CHECK(ones_in_vectors((vector *)(void *)start, bytes) != 0);
            start[i] = 0;
        }
    }
}

static void clears_vectors_and_no_more(void)
{
    static char expected[sizeof memory];
    for (size_t bytes = VECTOR_BYTES; bytes <= LONGEST; bytes += VECTOR_BYTES) {
        memset(memory, 0xff, sizeof memory);
        memset(expected, 0xff, sizeof expected);
        memset(expected + AROUND, 0, bytes);
        clear_vectors((vector *)(void *)(memory + AROUND), bytes);
        CHECK(memcmp(memory, expected, sizeof memory) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(finds_each_byte),
        UNIT_TEST(finds_each_byte_before_an_end),
        UNIT_TEST(finds_each_byte_of_vectors),
        UNIT_TEST(clears_vectors_and_no_more),
    };
    return cmocka_run_group_tests_name("zero", tests, NULL, NULL);
}
