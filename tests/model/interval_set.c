#include "interval_set.h"

#include "check.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    GRANULE_SHIFT = 3,  /* a bit is 8 bytes */
    WORD_SHIFT = 9,     /* a word is 512 bytes */
    REGION_SHIFT = 21,  /* a region, with its own bitmap, is 2 MiB */
    ADDRESS_BITS = 47,
    WORDS_PER_REGION = 1 << (REGION_SHIFT - WORD_SHIFT),
};
#define REGION_COUNT ((size_t)1 << (ADDRESS_BITS - REGION_SHIFT))

typedef _Atomic(uint64_t) word_t;

/* Bitmaps by region number; NULL where no block was yet. Mapped, and touched only where used. */
static _Atomic(word_t *) *regions;

static void *map_zeroed(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

void interval_set_init(void)
{
    regions = map_zeroed(REGION_COUNT * sizeof regions[0]);
}

static word_t *region_bitmap(uintptr_t address)
{
    const size_t number = address >> REGION_SHIFT;
    CHECK(number < REGION_COUNT);
    word_t *bitmap = atomic_load_explicit(&regions[number], memory_order_acquire);
    if (bitmap != NULL) {
        return bitmap;
    }
    word_t *fresh = map_zeroed(WORDS_PER_REGION * sizeof(word_t));
    if (atomic_compare_exchange_strong(&regions[number], &bitmap, fresh)) {
        return fresh;
    }
    munmap(fresh, WORDS_PER_REGION * sizeof(word_t));
    return bitmap;
}

static word_t *word_of(uintptr_t address)
{
    return &region_bitmap(address)[(address >> WORD_SHIFT) % WORDS_PER_REGION];
}

/* Calls for each word the part of it that [start, end) covers, as a mask. */
static void for_each_word(uintptr_t start, uintptr_t end, void (*visit)(word_t *word, uint64_t mask))
{
    const uintptr_t word_bytes = (uintptr_t)1 << WORD_SHIFT;
    for (uintptr_t at = start; at < end;) {
        const uintptr_t word_start = at / word_bytes * word_bytes;
        const uintptr_t stop = end < word_start + word_bytes ? end : word_start + word_bytes;
        const unsigned first = (unsigned)((at - word_start) >> GRANULE_SHIFT);
        const unsigned last = (unsigned)((stop - 1 - word_start) >> GRANULE_SHIFT);
        visit(word_of(at), (~(uint64_t)0 << first) & (~(uint64_t)0 >> (63 - last)));
        at = stop;
    }
}

static void set_bits(word_t *word, uint64_t mask)
{
    const uint64_t old = atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
    const uint64_t two_live_blocks_overlap = old & mask;
    CHECK(two_live_blocks_overlap == 0);
}

static void clear_bits(word_t *word, uint64_t mask)
{
    const uint64_t old = atomic_fetch_and_explicit(word, ~mask, memory_order_relaxed);
    CHECK((old & mask) == mask);
}

void interval_set_claim(const void *start, size_t size)
{
    const uintptr_t address = (uintptr_t)start;
    CHECK(address % 8 == 0);
    for_each_word(address, address + size, set_bits);
}

void interval_set_release(const void *start, size_t size)
{
    const uintptr_t address = (uintptr_t)start;
    for_each_word(address, address + size, clear_bits);
}
