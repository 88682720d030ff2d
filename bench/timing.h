/* Wall time and a generator that costs less than what is measured. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdint.h>
#include <time.h>

static inline double timing_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* xorshift64; *state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* A number below `bound` (at most 2^32) from the high half of a random one. */
static inline uint64_t random_below(uint64_t random, uint64_t bound)
{
    return (random >> 32) * bound >> 32;
}

#endif
