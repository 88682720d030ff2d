/* printf into a buffer, without malloc, locale or stdio: for messages from inside the allocator. */
#ifndef HAK_BASE_FMT_H
#define HAK_BASE_FMT_H

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"

/* Knows %s %c %d %u %ld %lu %zu %x %lx %p and %%. Writes at most `capacity` bytes, the ending zero included,
 * and returns the length of what stands in the buffer. Async-signal-safe. */
size_t fmt_vprint(char *buffer, size_t capacity, const char *format, va_list args) PRINTF_LIKE(3, 0);
size_t fmt_print(char *buffer, size_t capacity, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
