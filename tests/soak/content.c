#include "content.h"

#include "random.h"

#include <stdbool.h>
#include <string.h>

enum { PAGE = 4096, END = 1024, PLACE = 16, WORD = 8, SPARSE_STRIDE = 8 };
static const size_t SPARSE = (size_t)1 << 20;

/* Bytes of a block, from a multiple of WORD on. */
struct stretch {
    size_t from;
    size_t to;
};

static uint64_t word_at(uint64_t seed, size_t offset)
{
    const uint64_t z = (seed + offset) * 0x9e3779b97f4a7c15u;
    return z ^ (z >> 29);
}

/* The stretch with this number of a block's; false: there are no more. */
static bool stretch_number(struct stretch *stretch, size_t number, size_t size, uint64_t seed)
{
    if (size <= CONTENT_FULL) {
        *stretch = (struct stretch){0, size};
        return number == 0;
    }
    if (number == 0) {
        *stretch = (struct stretch){0, END};
        return true;
    }
    if (number == 1) {
        *stretch = (struct stretch){(size - END) / WORD * WORD, size};
        return true;
    }
    const size_t page = (number - 2) * (size > SPARSE ? SPARSE_STRIDE : 1) * PAGE;
    const size_t from = page + word_at(seed, page) % (PAGE - PLACE) / WORD * WORD;
    *stretch = (struct stretch){from, from + PLACE};
    return stretch->to <= size;
}

void content_fill(unsigned char *block, size_t size, size_t from, uint64_t seed)
{
    const size_t first_page = from / PAGE * PAGE;
    struct stretch stretch;
    for (size_t number = 0; stretch_number(&stretch, number, size, seed); number++) {
        size_t at = stretch.from > first_page ? stretch.from : first_page;
        for (; at + WORD <= stretch.to; at += WORD) {
            const uint64_t word = word_at(seed, at);
            memcpy(block + at, &word, WORD);
        }
        if (at < stretch.to) {
            const uint64_t word = word_at(seed, at);
            memcpy(block + at, &word, stretch.to - at);
        }
    }
}

/* The first byte in [at, to) that differs from `wanted`'s, which begin at `at`. */
static size_t differs(const unsigned char *block, size_t at, size_t to, uint64_t wanted)
{
    unsigned char bytes[WORD];
    memcpy(bytes, &wanted, WORD);
    for (size_t i = 0; i < WORD && at + i < to; i++) {
        if (block[at + i] != bytes[i]) {
            return at + i;
        }
    }
    return CONTENT_RIGHT;
}

size_t content_wrong(const unsigned char *block, size_t size, size_t upto, uint64_t seed)
{
    struct stretch stretch;
    for (size_t number = 0; stretch_number(&stretch, number, size, seed); number++) {
        const size_t to = stretch.to < upto ? stretch.to : upto;
        for (size_t at = stretch.from; at < to; at += WORD) {
            const uint64_t wanted = word_at(seed, at);
            uint64_t word = ~wanted;
            if (at + WORD <= to) {
                memcpy(&word, block + at, WORD);
            }
            const size_t wrong = word == wanted ? CONTENT_RIGHT : differs(block, at, to, wanted);
            if (wrong != CONTENT_RIGHT) {
                return wrong;
            }
        }
    }
    return CONTENT_RIGHT;
}

size_t content_not_zero(const unsigned char *block, size_t size, uint64_t seed)
{
    struct stretch stretch;
    for (size_t number = 0; stretch_number(&stretch, number, size, seed); number++) {
        for (size_t at = stretch.from; at < stretch.to; at += WORD) {
            const size_t wrong = differs(block, at, stretch.to, 0);
            if (wrong != CONTENT_RIGHT) {
                return wrong;
            }
        }
    }
    return CONTENT_RIGHT;
}

/* Growing, every place below the old size is filled or not looked at. Shrinking, a large block's places may become more. */
size_t content_refill_from(size_t old, size_t size)
{
    return size > old || old <= CONTENT_FULL ? old : 0;
}
