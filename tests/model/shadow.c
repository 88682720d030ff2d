#include "shadow.h"

#include "check.h"
#include "family.h"
#include "interval_set.h"

#include <stdlib.h>
#include <string.h>

/* The 8 bytes at offset 8 * index. */
static uint64_t pattern(uint64_t seed, size_t index)
{
    return (seed + index) * 0x9e3779b97f4a7c15u;
}

static void fill(unsigned char *block, size_t size, uint64_t seed)
{
    const size_t words = size / 8;
    for (size_t i = 0; i < words; i++) {
        const uint64_t word = pattern(seed, i);
        memcpy(block + i * 8, &word, 8);
    }
    const uint64_t word = pattern(seed, words);
    memcpy(block + words * 8, &word, size % 8);
}

void shadow_verify_prefix(const unsigned char *block, size_t size, uint64_t seed)
{
    const size_t words = size / 8;
    for (size_t i = 0; i < words; i++) {
        const uint64_t expected = pattern(seed, i);
        uint64_t found;
        memcpy(&found, block + i * 8, 8);
        CHECK(found == expected);
    }
    const uint64_t expected = pattern(seed, words);
    CHECK(memcmp(block + words * 8, &expected, size % 8) == 0);
}

void shadow_adopt(struct shadow *shadow, void *block, size_t size, size_t alignment, uint64_t seed)
{
    CHECK(block != NULL);
    const size_t natural = size >= 16 ? 16 : 8;
    CHECK((uintptr_t)block % (alignment != 0 ? alignment : natural) == 0);
    *shadow = (struct shadow){
        .block = block,
        .size = size,
        .usable = family.usable_size(block),
        .alignment = alignment,
        .seed = seed,
        .free_sized_ok = true,
    };
    CHECK(shadow->usable >= size);
    interval_set_claim(block, shadow->usable);
    fill(shadow->block, shadow->usable, seed);
}

void shadow_verify(const struct shadow *shadow)
{
    CHECK(family.usable_size(shadow->block) == shadow->usable);
    shadow_verify_prefix(shadow->block, shadow->usable, shadow->seed);
}

void *shadow_release(struct shadow *shadow)
{
    shadow_verify(shadow);
    interval_set_release(shadow->block, shadow->usable);
    void *block = shadow->block;
    shadow->block = NULL;
    return block;
}
