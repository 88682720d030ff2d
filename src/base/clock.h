/* Time for policy: coarse, monotonic, cheap. And the time that people read. */
#ifndef HAK_BASE_CLOCK_H
#define HAK_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since some moment in the past; resolution about 4 ms. Async-signal-safe. */
uint64_t clock_now_ms(void);

/* Nanoseconds since some moment in the past, exact. Async-signal-safe. */
uint64_t clock_now_ns(void);

/* Milliseconds since 1970; it may jump. Async-signal-safe. */
uint64_t clock_unix_ms(void);

#endif
