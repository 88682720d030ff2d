#include "base/zero.h"

#include <stdint.h>
#include <string.h>

/* Shorter memory is looked at word by word, which costs less than a call. */
enum { SHORT_BYTES = 128 };

static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

bool is_zero(const void *start, size_t bytes)
{
    const char *at = start;
    uint64_t any = 0;
    if (bytes < sizeof any) {
        for (size_t i = 0; i < bytes; i++)
            any |= (unsigned char)at[i];
        return any == 0;
    }
    if (bytes > SHORT_BYTES)
        return word_at(at) == 0 && memcmp(at, at + sizeof any, bytes - sizeof any) == 0;
    for (size_t i = 0; i + sizeof any < bytes; i += sizeof any)
        any |= word_at(at + i);
    return (any | word_at(at + bytes - sizeof any)) == 0;
}
