#include "base/zero.h"

bool is_zero(const void *start, size_t bytes)
{
    const char *at = start;
    unsigned char any = 0;
    if (bytes >= VECTOR_BYTES)
        return ones_in(at, bytes) == 0;
    if (bytes >= sizeof(uint64_t))
        return (load_word(at) | load_word(at + bytes - sizeof(uint64_t))) == 0;
    for (size_t i = 0; i < bytes; i++)
        any |= (unsigned char)at[i];
    return any == 0;
}
