/* What blocks hold in tests of the large layer: a word at each page. */
#ifndef HAK_TEST_WORDS_H
#define HAK_TEST_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "check.h"

/* The first word of each page: `mark` plus its offset. Below `from` all that fit are there. */
static inline void write_words(char *at, size_t from, size_t bytes, uint64_t mark)
{
    for (size_t offset = align_up(from - min_size(from, 7), 4096); offset + 8 <= bytes; offset += 4096)
        memcpy(at + offset, &(uint64_t){mark + offset}, 8);
}

static inline void check_words(const char *at, size_t bytes, uint64_t mark)
{
    for (size_t offset = 0; offset + 8 <= bytes; offset += 4096)
        CHECK(memcmp(at + offset, &(uint64_t){mark + offset}, 8) == 0);
}

static inline void check_zero(const char *at, size_t bytes)
{
    for (size_t offset = 0; offset < bytes; offset += 4096)
        CHECK(at[offset] == 0);
    CHECK(at[bytes - 1] == 0);
}

#endif
