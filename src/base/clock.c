#include "base/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return now;
}

static uint64_t read_ms(clockid_t clock)
{
    struct timespec now = read_clock(clock);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t clock_now_ms(void)
{
    return read_ms(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_now_ns(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_unix_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}
