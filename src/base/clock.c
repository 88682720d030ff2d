#include "base/clock.h"

#include <errno.h>
#include <time.h>

/* A sandbox may refuse it, where it is a system call: then time stands still. */
static struct timespec read_clock(clockid_t clock)
{
    struct timespec now = {0};
    int saved = errno;
    if (UNLIKELY(clock_gettime(clock, &now) != 0))
        errno = saved;
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
