/* A small repeatable random generator (splitmix64), one state per thread. */
#ifndef HAK_TEST_RANDOM_H
#define HAK_TEST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in [0, limit); limit > 0. */
static inline size_t random_below(uint64_t *state, size_t limit)
{
    return (size_t)(random_next(state) % limit);
}

#endif
