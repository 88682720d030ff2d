/* Time for policy: coarse, monotonic, cheap. And the time that people read. */
#ifndef HAK_BASE_CLOCK_H
#define HAK_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* Milliseconds since some moment in the past; resolution about 4 ms. Async-signal-safe. */
uint64_t clock_now_ms(void);

/* Nanoseconds since some moment in the past, exact. Async-signal-safe. */
uint64_t clock_now_ns(void);

/* Milliseconds since 1970; it may jump. Async-signal-safe. */
uint64_t clock_unix_ms(void);

/* Has so much passed? Who has waited for a lock may come with a time from before `since_ms`: then it has not. */
ALWAYS_INLINE bool clock_has_passed(uint64_t now_ms, uint64_t since_ms, uint64_t ms)
{
    return now_ms >= since_ms && now_ms - since_ms >= ms;
}

#endif
